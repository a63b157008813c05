//! Skills: a directory each, with `SKILL.md` and the files that it uses.
//!
//! A link in the place of a skill belongs to a plugin: it is named, and neither followed nor changed.
//! Links and pipes within one are left alone.

use super::{AgentConfigEditor, ConfigTarget, bad, check_hash, hash_of, hash_of_found, read_one};
use crate::ops::audit::{Change, Surface};
use crate::projects::instructions::refused;
use crate::tasks::blocking;
use crate::{AppError, Class};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use svc_agent::scope_file::{EntryKind, Found, ScopeFile, ScopeFileError};
use svc_config::front_matter;
use svc_domain::agent_config::names::{is_skill, skill_file};
use svc_domain::agent_config::secrets::{masked_text, unmasked_text};
use svc_domain::agent_config::skills::{
    MAIN, MOST_ALL, MOST_DEPTH, MOST_FILES, REVIEWED, check_files, check_name, most_bytes,
    too_large,
};
use svc_domain::log_escape::quoted;
use svc_shared::error::ErrorCode;
use svc_shared::internal::agent_config::{SkillDeleted, SkillFile, SkillItem, SkillSaved, Skills};

/// Most skills in a list.
const MOST_LISTED: usize = 500;

/// What is written into a skill.
#[derive(Debug, Clone)]
pub struct SkillWrite {
    /// Its name.
    pub name: String,
    /// Texts by their path in it.
    pub files: BTreeMap<String, String>,
    /// Hashes of the files that this is based on.
    pub hashes: BTreeMap<String, String>,
    /// A person has read what may be run.
    pub is_reviewed: bool,
}

impl SkillWrite {
    /// Whether what was typed says that scripts were read.
    #[must_use]
    pub fn is_phrase(typed: Option<&str>) -> bool {
        typed == Some(REVIEWED)
    }
}

/// One file of a write, with what was there.
struct Prepared {
    file: ScopeFile,
    relative: String,
    before: Option<Found>,
    text: String,
}

impl AgentConfigEditor {
    /// The skills of a scope with their files.
    ///
    /// # Errors
    /// Their directory leads elsewhere or cannot be read.
    pub async fn skills(&self, target: &ConfigTarget) -> Result<Skills, AppError> {
        let of = target.clone();
        let skills = blocking(move || listed(&of)).await?.map_err(refused)?;
        Ok(Skills {
            scope: target.scope.as_str().to_owned(),
            project: target.project_name(),
            skills,
        })
    }

    /// One file of a skill, without its secrets.
    ///
    /// # Errors
    /// No skill or file has such a name, or it is not one that can be shown.
    pub async fn skill_file(
        &self,
        target: &ConfigTarget,
        name: &str,
        relative: &str,
    ) -> Result<SkillFile, AppError> {
        let file = file_of(target, name, relative)?;
        check_own(target, name).await?;
        let found = read_one(&file).await?;
        Ok(SkillFile {
            scope: target.scope.as_str().to_owned(),
            project: target.project_name(),
            name: name.to_owned(),
            relative: relative.to_owned(),
            content: found.as_ref().map(|found| masked_text(&found.text)).unwrap_or_default(),
            hash: hash_of_found(found.as_ref()),
            exists: found.is_some(),
        })
    }

    /// Makes or replaces files of a skill: all of them or none.
    ///
    /// # Errors
    /// A name or a size does not fit, scripts are not reviewed, a file changed since its hash was
    /// read, or one cannot be written.
    pub async fn save_skill(
        self: &Arc<Self>,
        target: ConfigTarget,
        write: SkillWrite,
    ) -> Result<SkillSaved, AppError> {
        check_name(&write.name).map_err(bad)?;
        check_files(&write.files).map_err(bad)?;
        if let Some((relative, most)) = too_large(&write.files) {
            return Err(too_much(&format!("{} has more than {most} bytes", quoted(relative))));
        }
        if write.files.keys().any(|relative| relative != MAIN) && !write.is_reviewed {
            return Err(AppError::new(
                ErrorCode::ConfirmRequired,
                Class::Invalid,
                format!(
                    "`confirm_scripts` must be `{REVIEWED}`: files beside {MAIN} may be run by the \
                     agent"
                ),
            ));
        }
        let this = Arc::clone(self);
        let work = async move {
            let _writing = this.writing.lock().await;
            this.write_skill(&target, write).await
        };
        self.tasks.complete(work).await
    }

    async fn write_skill(
        &self,
        target: &ConfigTarget,
        write: SkillWrite,
    ) -> Result<SkillSaved, AppError> {
        check_own(target, &write.name).await?;
        let mut prepared = Vec::new();
        for (relative, sent) in &write.files {
            let file = file_of(target, &write.name, relative)?;
            let before = read_one(&file).await?;
            let stored = before.as_ref().map_or("", |found| &found.text);
            let text = unmasked_text(sent, stored).map_err(bad)?;
            if relative == MAIN && text.trim_start_matches('\u{feff}').starts_with("---") {
                front_matter(&text).map_err(AppError::invalid)?;
            }
            check_hash(&file, before.as_ref(), write.hashes.get(relative).map(String::as_str))?;
            prepared.push(Prepared { file, relative: relative.clone(), before, text });
        }
        self.check_total(target, &write.name, &prepared).await?;
        let hashes: BTreeMap<String, String> =
            prepared.iter().map(|one| (one.relative.clone(), hash_of(&one.text))).collect();
        prepared.retain(|one| one.before.as_ref().is_none_or(|found| found.text != one.text));
        if !prepared.is_empty() {
            let is_new = prepared.iter().all(|one| one.before.is_none());
            let change = Change {
                surface: Surface::Skills,
                scope: target.audit_scope(),
                target: directory(target, &write.name).path().to_string_lossy().into_owned(),
                action: if is_new { "create" } else { "update" },
                keys: prepared.iter().map(|one| one.relative.clone().into()).collect(),
            };
            // What the instructions name is there before them, also for a service that dies in
            // between.
            prepared.sort_by_key(|one| one.relative == MAIN);
            let (backups, now, mode) =
                (self.backups.clone(), self.audit.clock.now(), target.new_mode());
            let work = async move {
                blocking(move || {
                    for one in &prepared {
                        if let Some(found) = &one.before {
                            backups.keep(&one.file.path(), &found.text, now)?;
                        }
                    }
                    let write = |one: &Prepared| {
                        one.file.write(one.before.as_ref(), &one.text, mode).map_err(refused)
                    };
                    for (at, one) in prepared.iter().enumerate() {
                        if let Err(error) = write(one) {
                            // All or nothing: what was written before goes back.
                            prepared.iter().take(at).for_each(|done| take_back(done, mode));
                            return Err(error);
                        }
                    }
                    Ok(())
                })
                .await?
            };
            self.audit.record(change, work).await?;
        }
        Ok(SkillSaved {
            scope: target.scope.as_str().to_owned(),
            project: target.project_name(),
            name: write.name,
            ok: true,
            hashes,
        })
    }

    /// Refuses a skill that would become too large.
    async fn check_total(
        &self,
        target: &ConfigTarget,
        name: &str,
        prepared: &[Prepared],
    ) -> Result<(), AppError> {
        let skill = directory(target, name);
        let there = blocking(move || walked(&skill)).await?.map_err(refused)?;
        let is_kept = |file: &&Walked| !prepared.iter().any(|one| one.relative == file.relative);
        let kept: Vec<&Walked> = there.files.iter().filter(is_kept).collect();
        let bytes = kept.iter().map(|file| file.bytes).sum::<u64>()
            + prepared.iter().map(|one| one.text.len() as u64).sum::<u64>();
        if bytes > MOST_ALL as u64 {
            return Err(too_much(&format!("the skill would have more than {MOST_ALL} bytes")));
        }
        if kept.len() + prepared.len() > MOST_FILES || there.is_cut {
            return Err(too_much(&format!("the skill would have more than {MOST_FILES} files")));
        }
        Ok(())
    }

    /// Removes a skill. Each of its files becomes a copy first.
    ///
    /// # Errors
    /// It is a link, holds something that no copy can be kept of, or changed since `hash` was read.
    pub async fn delete_skill(
        self: &Arc<Self>,
        target: ConfigTarget,
        name: String,
        hash: Option<String>,
    ) -> Result<SkillDeleted, AppError> {
        check_name(&name).map_err(bad)?;
        let this = Arc::clone(self);
        let work = async move {
            let _writing = this.writing.lock().await;
            check_own(&target, &name).await?;
            let skill = directory(&target, &name);
            let found = {
                let skill = skill.clone();
                blocking(move || -> Result<_, ScopeFileError> {
                    Ok((skill.is_directory()?, walked(&skill)?))
                })
                .await?
                .map_err(refused)?
            };
            let (existed, there) = found;
            if existed {
                if let Some(hash) = &hash {
                    let main = file_of(&target, &name, MAIN)?;
                    check_hash(&main, read_one(&main).await?.as_ref(), Some(hash))?;
                }
                this.remove_skill(&target, &name, skill, there).await?;
            }
            Ok(SkillDeleted {
                scope: target.scope.as_str().to_owned(),
                project: target.project_name(),
                name,
                existed,
            })
        };
        self.tasks.complete(work).await
    }

    async fn remove_skill(
        &self,
        target: &ConfigTarget,
        name: &str,
        skill: ScopeFile,
        there: Walk,
    ) -> Result<(), AppError> {
        if there.is_cut || there.odd > 0 || there.hidden > 0 {
            let text = format!(
                "the skill {} holds links, hidden files or more than {MOST_FILES} files, of which \
                 no copies are kept; remove it on the machine",
                quoted(name)
            );
            return Err(AppError::new(ErrorCode::PathEscape, Class::Invalid, text));
        }
        let mut files = Vec::new();
        let mut bytes = 0;
        for walked in &there.files {
            let file = file_of(target, name, &walked.relative)?;
            let Some(found) = read_one(&file).await? else { continue };
            bytes += found.text.len();
            files.push((file, found));
        }
        if bytes > MOST_ALL {
            let text =
                format!("the skill has more than {MOST_ALL} bytes; remove it on the machine");
            return Err(AppError::new(ErrorCode::TooLarge, Class::TooLarge, text));
        }
        let change = Change {
            surface: Surface::Skills,
            scope: target.audit_scope(),
            target: skill.path().to_string_lossy().into_owned(),
            action: "delete",
            keys: there.files.iter().map(|file| file.relative.clone().into()).collect(),
        };
        let (backups, now) = (self.backups.clone(), self.audit.clock.now());
        let work = async move {
            blocking(move || {
                for (file, found) in &files {
                    backups.keep(&file.path(), &found.text, now)?;
                }
                for (file, found) in &files {
                    file.remove(found).map_err(refused)?;
                }
                // What is not empty was filled meanwhile, and stays.
                for inside in there.directories.iter().rev() {
                    skill.below(inside).remove_directory().map_err(refused)?;
                }
                skill.remove_directory().map_err(refused)
            })
            .await?
        };
        self.audit.record(change, work).await
    }
}

fn take_back(done: &Prepared, mode: svc_agent::scope_file::NewMode) {
    let Ok(Some(now)) = done.file.read() else { return };
    let back = match &done.before {
        Some(found) => done.file.write(Some(&now), &found.text, mode),
        None => done.file.remove(&now),
    };
    if let Err(error) = back {
        tracing::warn!(file = %done.file.path().display(), "a half-written skill stays: {error}");
    }
}

fn too_much(text: &str) -> AppError {
    AppError::new(ErrorCode::TooLarge, Class::TooLarge, format!("{text}; write less"))
}

fn in_skills(target: &ConfigTarget, end: &str, most: usize) -> ScopeFile {
    target.file(&format!("skills{end}"), &format!(".claude/skills{end}"), most)
}

fn directory(target: &ConfigTarget, name: &str) -> ScopeFile {
    in_skills(target, &format!("/{name}"), MOST_ALL)
}

/// The file of a skill by its path in it.
pub(super) fn file_of(
    target: &ConfigTarget,
    name: &str,
    relative: &str,
) -> Result<ScopeFile, AppError> {
    check_name(name).map_err(bad)?;
    skill_file(relative).map_err(bad)?;
    Ok(in_skills(target, &format!("/{name}/{relative}"), most_bytes(relative)))
}

/// Refuses a skill that is a link.
pub(super) async fn check_own(target: &ConfigTarget, name: &str) -> Result<(), AppError> {
    let skill = directory(target, name);
    if !blocking(move || skill.is_link()).await?.map_err(refused)? {
        return Ok(());
    }
    let text =
        format!("the skill {} is a link and belongs to a plugin; change it there", quoted(name));
    Err(AppError::new(ErrorCode::ReadOnly, Class::Forbidden, text))
}

/// What is in a skill.
#[derive(Debug, Default)]
struct Walk {
    files: Vec<Walked>,
    /// Paths of directories, those above before those below.
    directories: Vec<String>,
    /// Links, pipes and names that no file of a skill may have.
    odd: usize,
    /// Hidden names.
    hidden: usize,
    /// There is more than was looked at.
    is_cut: bool,
}

#[derive(Debug)]
struct Walked {
    relative: String,
    bytes: u64,
}

fn walked(skill: &ScopeFile) -> Result<Walk, ScopeFileError> {
    let mut walk = Walk::default();
    let mut next = vec![(String::new(), 0)];
    while let Some((at, depth)) = next.pop() {
        let directory = if at.is_empty() { skill.clone() } else { skill.below(&at) };
        let listing = directory.listing(MOST_FILES + 1)?;
        walk.hidden += listing.hidden;
        walk.is_cut |= listing.is_cut;
        for entry in listing.entries {
            let relative =
                if at.is_empty() { entry.name.clone() } else { format!("{at}/{}", entry.name) };
            match entry.kind {
                EntryKind::File if skill_file(&relative).is_ok() => {
                    walk.files.push(Walked { relative, bytes: entry.bytes });
                }
                EntryKind::Directory if depth + 1 < MOST_DEPTH => {
                    walk.directories.push(relative.clone());
                    next.push((relative, depth + 1));
                }
                EntryKind::Directory => walk.is_cut = true,
                EntryKind::File | EntryKind::Link | EntryKind::Other => walk.odd += 1,
            }
            if walk.files.len() + walk.directories.len() > MOST_FILES {
                walk.is_cut = true;
                next.clear();
                break;
            }
        }
    }
    walk.files.sort_unstable_by(|one, other| one.relative.cmp(&other.relative));
    walk.directories.sort_unstable();
    Ok(walk)
}

fn listed(target: &ConfigTarget) -> Result<Vec<SkillItem>, ScopeFileError> {
    let mut skills = Vec::new();
    for entry in in_skills(target, "", 0).entries(MOST_LISTED)? {
        let nothing = || SkillItem {
            name: entry.name.clone(),
            editable: false,
            has_skill_md: false,
            files: Vec::new(),
            description: None,
            disable_model_invocation: None,
            frontmatter_error: None,
            files_error: None,
        };
        match entry.kind {
            EntryKind::Directory => {}
            EntryKind::Link => {
                let why = "it is a link and belongs to a plugin".to_owned();
                skills.push(SkillItem { files_error: Some(why), ..nothing() });
                continue;
            }
            EntryKind::File | EntryKind::Other => continue,
        }
        let mut item = SkillItem { editable: is_skill(&entry.name), ..nothing() };
        match walked(&directory(target, &entry.name)) {
            Ok(walk) => {
                item.has_skill_md = walk.files.iter().any(|file| file.relative == MAIN);
                item.files_error = if walk.is_cut {
                    Some(format!("it has more than {MOST_FILES} files; the rest is not listed"))
                } else if walk.odd > 0 {
                    Some("it holds links or other things that are no plain files".to_owned())
                } else {
                    None
                };
                item.files = walk.files.into_iter().map(|file| file.relative).collect();
            }
            Err(error) => item.files_error = Some(error.to_string()),
        }
        if item.has_skill_md {
            let main = in_skills(target, &format!("/{}/{MAIN}", entry.name), most_bytes(MAIN));
            match main.read().map(|found| found.map(|found| front_matter(&found.text))) {
                Ok(Some(Ok(front))) => {
                    let description = front.get("description").and_then(Value::as_str);
                    item.description = description.map(masked_text);
                    let flag = front.get("disable-model-invocation");
                    item.disable_model_invocation = flag.and_then(Value::as_bool);
                }
                Ok(Some(Err(problem))) => item.frontmatter_error = Some(problem),
                Ok(None) => {}
                Err(error) => item.frontmatter_error = Some(error.to_string()),
            }
        }
        skills.push(item);
    }
    Ok(skills)
}
