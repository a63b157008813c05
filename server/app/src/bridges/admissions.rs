//! Whether a launch may happen, and what runs in its place if something does.

use crate::AppError;
use crate::bridges::adopt::Adopter;
use crate::bridges::circumstances::{judged, refuse};
use crate::bridges::readiness::Readiness;
use crate::bridges::wrong_end::WrongEnds;
use crate::projects::trusting::Trust;
use std::sync::Arc;
use svc_domain::admission::{Admission, Circumstances, Obstacle, Picked, Wanted};
use svc_projects::Project;
use svc_shared::ids::{InstanceId, ProjectName};
use svc_store::Cap;

/// Looks at what runs in the project.
/// What was found there may be gone when it is taken over.
const LOOKS: u32 = 3;

/// What the launch comes to.
pub(super) enum Admitted {
    Launch { grant_trust: bool },
    Reuse(InstanceId),
    TakenOver(InstanceId),
}

/// Admits launches: judges them, takes over what runs already, grants trust.
pub(crate) struct Admissions {
    pub readiness: Arc<Readiness>,
    pub trust: Arc<Trust>,
    pub adopter: Arc<Adopter>,
    pub wrong_ends: Arc<WrongEnds>,
}

impl Admissions {
    /// Judges the launch, and makes the record of a bridge that runs in its place.
    /// The caller holds the project lock.
    pub(super) async fn admitted(
        &self,
        project: &Project,
        wanted: Wanted,
        picked: Picked,
    ) -> Result<Admitted, AppError> {
        for _ in 0..LOOKS {
            let live = self.adopter.transitions.registry.live().await?;
            let now = self.readiness.circumstances_now(project, wanted, live).await?;
            let now = Circumstances { picked, ..now };
            let found = match judged(&project.name, wanted, &now)? {
                Admission::Launch { grant_trust } => return Ok(Admitted::Launch { grant_trust }),
                Admission::Reuse(id) => return Ok(Admitted::Reuse(id)),
                Admission::Refused(obstacle) => return Err(refuse(&project.name, &obstacle)),
                Admission::TakeOver(_) => self.adopter.take_over(project).await?,
                Admission::Correct(id) => self.wrong_ends.corrected(&id).await?,
            };
            if let Some(id) = found {
                return Ok(Admitted::TakenOver(id));
            }
        }
        Err(AppError::busy(
            "the bridge that runs in this project changes too quickly to be judged; try again",
        ))
    }

    pub(crate) fn cap(&self) -> Cap {
        Cap { max_live: self.readiness.config.instance_defaults.max_bridges }
    }

    pub(crate) fn cap_reached(&self, project: &ProjectName) -> AppError {
        let max = self.readiness.config.instance_defaults.max_bridges.unwrap_or(0);
        refuse(project, &Obstacle::Capacity { max })
    }
}
