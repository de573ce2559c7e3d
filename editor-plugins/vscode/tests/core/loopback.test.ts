import { describe, expect, it } from "vitest";

import { isLoopback } from "../../src/core/loopback";

describe("an address", () => {
  it.each(["http://127.0.0.1:8080/login", "http://127.8.0.1/", "http://localhost:3000/", "http://app.localhost/", "https://[::1]/", "http://0.0.0.0:1/"])(
    "of the computer itself is known: %s", (address) => expect(isLoopback(address)).toBe(true),
  );
  it.each(["https://example.com/", "http://localhost.example.com/", "http://10.127.0.0.1.example/", "http://192.168.0.1/", "javascript:alert(1)", "no address"])(
    "of another one is none of it: %s", (address) => expect(isLoopback(address)).toBe(false),
  );
});
