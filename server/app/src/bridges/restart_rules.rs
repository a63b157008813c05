//! What the configuration says about automatic restarts.

use svc_config::Config;
use svc_domain::restart::Rules;
use svc_shared::ids::ProjectName;

/// What the configuration says about the restarts of a project.
pub(crate) fn rules(config: &Config, project: &ProjectName) -> Rules {
    let restart = &config.restart;
    Rules {
        policy: config.restart_policy(project),
        initial: restart.initial_delay,
        longest: restart.max_delay,
        multiplier: restart.multiplier,
        jitter: restart.jitter,
        max_crashes: restart.max_crashes,
        window: restart.window,
        stable_after: restart.stable_after,
        after_reboot: config.claude.after_reboot,
    }
}
