/** Letting the agent open a session that it has. */

import type { Say } from "../shared/words";
import type { Abilities } from "./abilities";
import { AgentProblem, told } from "./problems";
import type { Session } from "./session";

/** What it takes: a way to ask, where the session works, what the agent can. */
export interface Attaching {
  request(method: string, params: object): Promise<unknown>;
  place: object;
  abilities: Abilities | null;
  say: Say;
}

/**
 * Open the session with what was said before, where the agent shows that. With `keep` what is shown
 * already stays, where the agent can go on without showing it again.
 * @throws AgentProblem, or the agent's error, when the agent refuses, or can do neither.
 */
export async function attach(session: Session, how: Attaching, keep: boolean): Promise<void> {
  const params = { sessionId: session.id, ...how.place, mcpServers: [] };
  const { load, resume } = how.abilities ?? { load: false, resume: false };
  if (load && !(keep && resume)) {
    session.transcript.clear();
    session.opened(await how.request("session/load", params));
  } else if (resume) {
    session.opened(await how.request("session/resume", params));
    if (!keep) session.transcript.notice("info", how.say("session.noHistory"));
  } else {
    throw new AgentProblem(how.say("session.cannotOpen"));
  }
  session.transcript.cutOff();
}

/** Give another life of the agent the sessions that the one before had. What does not succeed is told in them. */
export async function attachAgain(sessions: readonly Session[], how: (session: Session) => Attaching): Promise<void> {
  await Promise.all(sessions.map(async (session) => {
    const attaching = how(session);
    try {
      await attach(session, attaching, true);
      session.transcript.notice("info", attaching.say("agent.resumed"));
      session.resumed();
    } catch (error) {
      session.transcript.notice("error", attaching.say("agent.notResumed", told(error)));
    }
  }));
}
