"""The handlers of our own methods: exporting sessions, listing checkpoints and rewinding."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from acp_agent.errors import InvalidInputError
from acp_agent.ids import SessionId
from acp_agent.server.conversion import format_timestamp
from acp_agent.server.extensions.types import (
    CheckpointPoint,
    ExportSessionRequest,
    ExportSessionResponse,
    ExtensionType,
    ListCheckpointsRequest,
    ListCheckpointsResponse,
    ListResourcesRequest,
    ListResourcesResponse,
    NamedResource,
    NotKeptFile,
    RestoreCheckpointRequest,
    RestoreCheckpointResponse,
    RestoredFile,
    UntouchedFile,
)
from acp_agent.server.operations import Operations
from acp_agent.session.history.checkpoint_files import NotSaved
from acp_agent.session.history.export import export_page
from acp_agent.session.history.rewind import Point, RewindResult
from acp_agent.session.session import Session
from protocol.codec import typed_json

_MAX_LISTED = 1_000  # files of one answer
RequestT = TypeVar("RequestT", bound=ExtensionType)


async def export_session(operations: Operations, params: dict[str, Any]) -> ExportSessionResponse:
    """Return a part of a session as text; any client may have it open.

    Raises:
        InvalidInputError: the parameters are wrong.
        SessionNotFoundError: there is no such session.
        StoreError: it cannot be read.
    """
    request = _decode(params, ExportSessionRequest)
    core = operations.core
    services = await core.services()
    session = SessionId(request.session_id)
    if core.active_manager is not None:
        await core.active_manager.flush(session)
    page = await export_page(
        services.store,
        session,
        form=request.format,
        secrets=services.secrets.values(),
        limit=request.max_bytes,
        cursor=request.cursor,
    )
    return ExportSessionResponse(content=page.content, next_cursor=page.next_cursor)


async def list_points(operations: Operations, params: dict[str, Any]) -> ListCheckpointsResponse:
    """Return the points that a session can be rewound to.

    Raises:
        InvalidInputError: the parameters are wrong.
        SessionNotFoundError: it is not open on this connection.
        StoreError: it cannot be read.
    """
    request = _decode(params, ListCheckpointsRequest)
    async with operations.exclusive_access(request.session_id):
        session = await operations.get(request.session_id)
        points = await session.resources.rewinder.points()
        not_saved = await session.resources.rewinder.not_saved(points)
    return ListCheckpointsResponse(
        points=[_point(session, point) for point in points],
        not_kept=_convert_not_saved(session, not_saved),
        not_kept_count=not_saved.count,
    )


async def restore(operations: Operations, params: dict[str, Any]) -> RestoreCheckpointResponse:
    """Rewind a session, or return what that would change; see `Rewinder`.

    Raises:
        InvalidInputError: the parameters are wrong, or there is no such point.
        SessionNotFoundError: it is not open on this connection.
        TurnRunsError: a turn runs in it.
        WorkspaceError: the files cannot be had.
        StoreError: the journal cannot be read or written.
    """
    request = _decode(params, RestoreCheckpointRequest)
    async with operations.exclusive_access(request.session_id):
        session = await operations.get(request.session_id)
        rewinder = session.resources.rewinder
        if request.dry_run:
            result = await rewinder.preview(request.point_id, request.what, force=request.force)
        else:
            result = await session.rewind(request.point_id, request.what, force=request.force)
    return _response(session, result)


async def list_resources(operations: Operations, params: dict[str, Any]) -> ListResourcesResponse:
    """Return the resources of a session's MCP servers as a prompt names them.

    Waits only to complete the variables of templates.

    Raises:
        InvalidInputError: the parameters are wrong.
        SessionNotFoundError: it is not open on this connection.
    """
    request = _decode(params, ListResourcesRequest)
    session = await operations.get(request.session_id)
    servers = session.extensions.mcp
    if servers is None:
        return ListResourcesResponse(resources=[])
    from acp_agent.session.mcp.mentions import complete_mention, list_mentions  # noqa: PLC0415 - where there are any

    resources = [
        NamedResource(mention=mention, name=name) for mention, name in list_mentions(servers)
    ]
    if request.typed:
        resources += [
            NamedResource(mention=mention, name=name, incomplete=incomplete)
            for mention, name, incomplete in await complete_mention(servers, request.typed)
        ]
    return ListResourcesResponse(resources=resources[:_MAX_LISTED])


def _decode(params: dict[str, Any], kind: type[RequestT]) -> RequestT:
    try:
        return typed_json.decode(typed_json.encode(params), kind)
    except typed_json.InvalidValueError as error:
        raise InvalidInputError(f"invalid params: {error}", field=error.field or None) from None


def _point(session: Session, point: Point) -> CheckpointPoint:
    return CheckpointPoint(
        point_id=point.id,
        number=point.number,
        kind=point.kind,
        title=session.core.clean(point.title),
        at=format_timestamp(point.at),
        files=bool(point.files),
        current=point.current,
    )


def _convert_not_saved(session: Session, not_saved: NotSaved) -> list[NotKeptFile]:
    return [
        NotKeptFile(path=session.core.clean(file.path), reason=file.why) for file in not_saved.files
    ]


def _response(session: Session, result: RewindResult) -> RestoreCheckpointResponse:
    return RestoreCheckpointResponse(
        changes=[
            RestoredFile(
                path=session.core.clean(file.path), change=file.change, by_others=file.by_others
            )
            for file in result.files.changes[:_MAX_LISTED]
        ],
        change_count=len(result.files.changes),
        untouched=[
            UntouchedFile(
                path=session.core.clean(file.path), reason=file.why, by_others=file.by_others
            )
            for file in result.files.unchanged[:_MAX_LISTED]
        ],
        not_kept=_convert_not_saved(session, result.not_saved),
        not_kept_count=result.not_saved.count,
        rewind_id=result.rewind or None,
    )


HANDLERS: dict[str, Callable[[Operations, dict[str, Any]], Awaitable[ExtensionType]]] = {
    "_acp-agent/session/export": export_session,
    "_acp-agent/checkpoints/list": list_points,
    "_acp-agent/checkpoints/restore": restore,
    "_acp-agent/resources/list": list_resources,
}
