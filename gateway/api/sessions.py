"""Sessions and their working state over HTTP: what an agent is doing now, and what it did before."""

from __future__ import annotations

import orjson

from gateway.api.models import PageQuery, WorkingBody
from gateway.api.operation import Answered, Asked, answer
from gateway.errors import BadRequest, NotFound
from gateway.memory.scribe import Scribe
from gateway.memory.transfer import MAX_SESSIONS, entry_json, session_json
from gateway.memory.working import WorkingMemory
from gateway.store.protocol import Session, Store


class Sessions:
    """Handlers over one tenant's sessions."""

    def __init__(self, store: Store, scribe: Scribe) -> None:
        self._store = store
        self._scribe = scribe

    async def list(self, asked: Asked) -> Answered:
        """Newest activity first. The cursor is a position: a session that is active meanwhile moves to the front."""
        query: PageQuery = asked.query
        start = min(int(query.cursor or 0), MAX_SESSIONS)
        found = await self._store.sessions(asked.tenant, start + query.limit + 1)
        data = [session_json(session) for session in found[start : start + query.limit]]
        more = len(found) > start + query.limit
        return answer({"object": "list", "data": data, "next_cursor": str(start + query.limit) if more else None})

    async def get(self, asked: Asked) -> Answered:
        """One session."""
        return answer(session_json(await self._session(asked)))

    async def notes(self, asked: Asked) -> Answered:
        """The scribe's notes on a session, in their order."""
        query: PageQuery = asked.query
        page = await self._store.list(
            asked.tenant,
            scope="session",
            session=(await self._session(asked)).id,
            oldest_first=True,
            limit=query.limit,
            cursor=query.cursor,
        )
        data = [entry_json(entry) for entry in page.entries]
        return answer({"object": "list", "data": data, "next_cursor": page.cursor})

    async def finish(self, asked: Asked) -> Answered:
        """End a session now: its notes become one entry of its project's history."""
        session = await self._session(asked)
        if session.finished is None:
            await self._scribe.finish(asked.tenant, session.id)
        document = {"object": "memory.session.finished", "id": session.id, "finished": session.finished is None}
        return answer(document)

    async def working(self, asked: Asked) -> Answered:
        """The state of the session's task."""
        session = _named(asked)
        raw = await self._store.get_working(asked.tenant, session)
        if raw is None:
            raise NotFound("No working state is kept for this session.")
        return _working(session, WorkingMemory.loads(raw))

    async def set_working(self, asked: Asked) -> Answered:
        """Replace it; what the body leaves out is emptied."""
        session = _named(asked)
        body: WorkingBody = asked.body
        state = WorkingMemory.loads(orjson.dumps(body.model_dump()))
        await self._store.set_working(asked.tenant, session, state.dumps())
        return _working(session, state)

    async def delete_working(self, asked: Asked) -> Answered:
        """Drop it."""
        session = _named(asked)
        if await self._store.get_working(asked.tenant, session) is None:
            raise NotFound("No working state is kept for this session.")
        await self._store.set_working(asked.tenant, session, None)
        return answer({"object": "memory.deleted", "id": session, "deleted": True})

    async def _session(self, asked: Asked) -> Session:
        name = asked.path["session"]
        for session in await self._store.sessions(asked.tenant, MAX_SESSIONS):
            if session.id == name:
                return session
        raise NotFound(f"No session '{name[:100]}' is kept for you.")


def _named(asked: Asked) -> str:
    """The session by the path, else by the header."""
    session = asked.path.get("session", asked.session)
    if not session:
        raise BadRequest("Name the session in the header X-Session-Id.", param="x-session-id")
    return session


def _working(session: str, state: WorkingMemory) -> Answered:
    return answer({"object": "memory.working", "session": session, **orjson.loads(state.dumps())})
