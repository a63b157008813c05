//! The conversation of an Interactive Session, and how a launch takes it up.

use std::fmt;
use std::str::FromStr;

/// The agent's own id of a conversation.
/// Who knows it can continue the conversation, so it never leaves the service.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConversationId(Box<str>);

/// Why a text is not the id of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not the id of a conversation: use a UUID (8-4-4-4-12 hexadecimal digits)")]
pub struct BadConversationId;

impl FromStr for ConversationId {
    type Err = BadConversationId;

    fn from_str(raw: &str) -> Result<Self, BadConversationId> {
        let fits = raw.len() == 36
            && raw.bytes().enumerate().all(|(at, byte)| match at {
                8 | 13 | 18 | 23 => byte == b'-',
                _ => byte.is_ascii_hexdigit(),
            });
        // The agent writes lower case, and its files are named by it.
        fits.then(|| Self(raw.to_ascii_lowercase().into())).ok_or(BadConversationId)
    }
}

impl ConversationId {
    /// The raw id, for the agent and for the store only.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ConversationId {
    // A derived form would put a credential into logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ConversationId(..)")
    }
}

/// Which conversation a launch of an Interactive Session begins with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TakeUp {
    /// A new one.
    New,
    /// The newest one of the directory it works in.
    Newest,
    /// This one goes on.
    Same(ConversationId),
    /// A copy of this one; the original stays as it is.
    CopyOf(ConversationId),
}

/// What is known about the conversations of the directory that a session works in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept<'a> {
    /// Those with a transcript, newest first.
    pub transcripts: &'a [ConversationId],
    /// No other session works in the directory.
    pub is_alone: bool,
    /// The directory is the worktree of this one session.
    pub is_own: bool,
}

/// How a resume goes on with the conversation of its session.
///
/// The agent is only told to take the newest one where that cannot be another session's. A session
/// whose conversation has no transcript has said nothing, and the agent would refuse to resume it.
#[must_use]
pub fn take_up(recorded: Option<&ConversationId>, kept: Kept<'_>) -> TakeUp {
    match recorded {
        Some(own) if kept.is_alone && kept.transcripts.first() == Some(own) => TakeUp::Newest,
        Some(own) if kept.transcripts.contains(own) => TakeUp::Same(own.clone()),
        // Nobody else ever worked in its worktree.
        Some(_) | None if kept.is_own && !kept.transcripts.is_empty() => TakeUp::Newest,
        Some(_) | None => TakeUp::New,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(last: char) -> ConversationId {
        format!("0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f{last}").parse().unwrap()
    }

    #[test]
    fn only_a_uuid_is_the_id_of_a_conversation() {
        for bad in [
            "",
            "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f",
            "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f00",
            "0f1e2d3c4b5a-6978-8796-a5b4c3d2e1f00",
            "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1g0",
            "--resume-everything-that-there-is-00",
        ] {
            assert_eq!(bad.parse::<ConversationId>(), Err(BadConversationId), "{bad:?}");
        }
        let upper: ConversationId = "0F1E2D3C-4B5A-6978-8796-A5B4C3D2E1F0".parse().unwrap();
        assert_eq!(upper, id('0'));
        assert!(!format!("{upper:?}").contains("0f1e"));
    }

    #[test]
    fn a_resume_takes_up_the_conversation_of_its_own_session_and_never_anothers() {
        let (own, other) = (id('1'), id('2'));
        let newest = [own.clone(), other.clone()];
        let older = [other.clone(), own.clone()];
        let foreign = [other];
        let kept = |transcripts, is_alone, is_own| Kept { transcripts, is_alone, is_own };
        let rows: [(Option<&ConversationId>, Kept<'_>, TakeUp); 9] = [
            (Some(&own), kept(&newest, true, false), TakeUp::Newest),
            // Another session may write between this decision and the start of the agent.
            (Some(&own), kept(&newest, false, false), TakeUp::Same(own.clone())),
            (Some(&own), kept(&older, true, false), TakeUp::Same(own.clone())),
            (Some(&own), kept(&foreign, true, false), TakeUp::New),
            (Some(&own), kept(&[], true, false), TakeUp::New),
            (None, kept(&foreign, true, false), TakeUp::New),
            (None, kept(&foreign, true, true), TakeUp::Newest),
            (None, kept(&[], true, true), TakeUp::New),
            (Some(&own), kept(&older, true, true), TakeUp::Same(own.clone())),
        ];
        for (recorded, kept, expected) in rows {
            assert_eq!(take_up(recorded, kept), expected, "{kept:?}");
        }
    }
}
