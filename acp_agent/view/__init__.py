"""A session as one HTML page that works offline: events → data → HTML.

`reader` converts events to the data of the page (`page`), and `html` renders that as a file.
"""
