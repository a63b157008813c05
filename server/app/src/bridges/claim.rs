//! What connects a process with the launch of a record (H102).
//!
//! A record can name a stranger's true pid, start and boot: whoever can write the database could let
//! us end any process of this user. So the process itself is asked.

use crate::bridges::unmanaged::seen;
use std::path::Path;
use svc_domain::bridge::Bridge;
use svc_domain::identity::{ProcessIdentity, Verdict};
use svc_ports::ProcessHost;

/// What connects a process with the launch of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Claim {
    /// It is the one that was launched.
    Proven,
    /// There is no such process any more.
    Gone,
    /// It belongs to another launch.
    Stranger,
    /// Nothing but the record says that it is ours.
    Unproven,
}

/// Asks the process itself for its launch. Blocks: reads the process table.
///
/// `program` is the agent that this service runs.
pub(crate) fn claim(
    host: &dyn ProcessHost,
    program: &Path,
    bridge: &Bridge,
    identity: &ProcessIdentity,
) -> Claim {
    let told = match bridge.launch.as_ref().map(|launch| &launch.id) {
        Some(_) if host.is_own_child(identity) => Some(Claim::Proven),
        Some(wanted) => host
            .launch_of(identity)
            .map(|found| if found == *wanted { Claim::Proven } else { Claim::Stranger }),
        // Somebody else started it: it must be what was demanded when it was adopted.
        None => {
            let facts = host.inspect(identity.pid).filter(|it| it.identity == *identity);
            facts.map(|facts| match seen(&facts, &bridge.cwd, program) {
                found if found.is_in_the_way() => Claim::Proven,
                _ => Claim::Unproven,
            })
        }
    };
    told.unwrap_or_else(|| match host.probe(identity) {
        Verdict::Gone(_) => Claim::Gone,
        Verdict::Same | Verdict::Unknown => Claim::Unproven,
    })
}
