//! Reads the members of a JSON object and collects every error.

use crate::error::{Refusal, echo};
use serde_json::{Map, Value};
use svc_shared::api::approvals::{AnswerRequest, MessageRequest};
use svc_shared::api::instances::{PatchInstance, ReleaseRequest, ResumeRequest, SpawnRequest};
use svc_shared::error::SchemaProblem;
use svc_shared::internal::access::{IssueTokenRequest, RotateTokenRequest};
use svc_shared::internal::agent_sign_in::{SignInCode, StartSignIn};
use svc_shared::internal::changes::RemoveWorktree;
use svc_shared::internal::clones::{CloneRequest, CreateProject};
use svc_shared::internal::environments::ReapRequest;
use svc_shared::internal::instructions::WriteInstructions;
use svc_shared::internal::notifications::TestNotification;
use svc_shared::internal::push::{PushKeys, SubscribePush};
use svc_shared::internal::restore::{DismissRequest, RestoreRequest};
use svc_shared::internal::settings::SaveConfig;
use svc_shared::internal::webhooks::{ReplayWebhooks, TestWebhook};
use svc_shared::internal::{TrustAllRequest, UiPrefs};

/// Most unknown names reported one by one.
const REPORTED: usize = 20;

/// A type that is read from the members of an object.
pub(crate) trait FromFields: Sized {
    /// Takes its members; problems are kept by `fields`.
    fn take(fields: &mut Fields) -> Self;
}

/// The members that were not taken yet, and what was wrong so far.
#[derive(Debug)]
pub(crate) struct Fields {
    members: Map<String, Value>,
    problems: Vec<SchemaProblem>,
    with_nul: Option<&'static str>,
}

/// Reads a whole body. Also returns the names nobody asked for.
///
/// # Errors
/// 422 naming every member that does not fit.
pub(crate) fn read<T: FromFields>(body: Option<Value>) -> Result<(T, Vec<String>), Refusal> {
    let members = match body {
        None => Map::new(),
        Some(Value::Object(members)) => members,
        Some(_) => {
            return Err(not_an_object());
        }
    };
    let mut fields = Fields { members, problems: Vec::new(), with_nul: None };
    let value = T::take(&mut fields);
    if !fields.problems.is_empty() {
        return Err(Refusal::schema(fields.problems));
    }
    if let Some(name) = fields.with_nul {
        return Err(Refusal::invalid(format!("`{name}` holds a NUL character; remove it")));
    }
    Ok((value, fields.members.into_iter().map(|(name, _)| name).collect()))
}

/// One warning per unknown name: a typo must not silently launch with defaults.
pub(crate) fn unknown_field_warnings(unknown: &[String]) -> Vec<String> {
    let mut warnings: Vec<String> = unknown
        .iter()
        .take(REPORTED)
        .map(|name| format!("unknown field `{}` was ignored; check its spelling", echo(name)))
        .collect();
    if unknown.len() > REPORTED {
        warnings.push(format!("{} more unknown fields were ignored", unknown.len() - REPORTED));
    }
    warnings
}

impl Fields {
    /// A text that must be there.
    pub(crate) fn required_text(&mut self, name: &'static str) -> String {
        match self.members.contains_key(name) {
            true => match self.members.remove(name) {
                Some(Value::String(text)) => self.checked(name, text),
                _ => self.wrong(name, "must be a string", "string_type"),
            },
            false => self.wrong(name, "is required", "missing"),
        }
    }

    /// A text; null and absence are the same.
    pub(crate) fn text(&mut self, name: &'static str) -> Option<String> {
        match self.members.remove(name) {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => Some(self.checked(name, text)),
            Some(_) => self.wrong(name, "must be a string or null", "string_type"),
        }
    }

    /// A text or null, which differs from absence.
    fn nullable_text(&mut self, name: &'static str) -> Option<Option<String>> {
        self.members.contains_key(name).then(|| self.text(name))
    }

    /// A switch; null and absence are the same.
    pub(crate) fn flag(&mut self, name: &'static str) -> Option<bool> {
        match self.members.remove(name) {
            None | Some(Value::Null) => None,
            Some(Value::Bool(flag)) => Some(flag),
            Some(_) => self.wrong(name, "must be true, false or null", "bool_type"),
        }
    }

    /// A list of texts that must be there.
    pub(crate) fn required_texts(&mut self, name: &'static str) -> Vec<String> {
        let items = match self.members.remove(name) {
            Some(Value::Array(items)) => items,
            Some(_) => return self.wrong(name, "must be a list of strings", "list_type"),
            None => return self.wrong(name, "is required", "missing"),
        };
        let mut texts = Vec::with_capacity(items.len());
        for (index, item) in items.into_iter().enumerate() {
            match item {
                Value::String(text) => texts.push(self.checked(name, text)),
                _ => self.problems.push(SchemaProblem {
                    loc: vec!["body".into(), name.into(), index.to_string()],
                    msg: "must be a string".into(),
                    kind: "string_type".into(),
                }),
            }
        }
        texts
    }

    /// A list of texts; null and absence are the same.
    fn texts(&mut self, name: &'static str) -> Option<Vec<String>> {
        match self.members.get(name) {
            None | Some(Value::Null) => None,
            Some(_) => Some(self.required_texts(name)),
        }
    }

    /// An object that must be there, with whatever is in it.
    fn required_members(&mut self, name: &'static str) -> Map<String, Value> {
        match self.members.remove(name) {
            Some(Value::Object(members)) => members,
            Some(_) => self.wrong(name, "must be an object", "object_type"),
            None => self.wrong(name, "is required", "missing"),
        }
    }

    /// A count that must be there.
    fn required_count(&mut self, name: &'static str) -> u64 {
        match self.members.remove(name) {
            Some(value) => value.as_u64().unwrap_or_else(|| {
                self.wrong(name, "must be a whole number, 0 or more", "int_type")
            }),
            None => self.wrong(name, "is required", "missing"),
        }
    }

    /// A count; null and absence are the same.
    fn count(&mut self, name: &'static str) -> Option<u64> {
        match self.members.get(name) {
            None | Some(Value::Null) => None,
            Some(_) => Some(self.required_count(name)),
        }
    }

    fn checked(&mut self, name: &'static str, text: String) -> String {
        if text.contains('\0') {
            self.with_nul.get_or_insert(name);
        }
        text
    }

    fn wrong<T: Default>(&mut self, name: &str, msg: &str, kind: &str) -> T {
        self.problems.push(SchemaProblem {
            loc: vec!["body".into(), name.into()],
            msg: msg.into(),
            kind: kind.into(),
        });
        T::default()
    }
}

impl FromFields for SpawnRequest {
    fn take(fields: &mut Fields) -> Self {
        Self {
            project: fields.required_text("project"),
            channel: fields.text("channel"),
            mode: fields.text("mode"),
            trust: fields.flag("trust"),
            spawn_mode: fields.text("spawn_mode"),
            permission_mode: fields.text("permission_mode"),
            resume_mode: fields.text("resume_mode"),
            name: fields.text("name"),
            sandbox: fields.text("sandbox"),
            conversation: fields.text("conversation"),
            resume_session_id: fields.text("resume_session_id"),
            restart: fields.text("restart"),
            after_reboot: fields.text("after_reboot"),
            on_limit: fields.text("on_limit"),
        }
    }
}

impl FromFields for ResumeRequest {
    fn take(fields: &mut Fields) -> Self {
        Self { trust: fields.flag("trust") }
    }
}

impl FromFields for PatchInstance {
    fn take(fields: &mut Fields) -> Self {
        Self {
            label: fields.text("label"),
            restart: fields.nullable_text("restart"),
            after_reboot: fields.nullable_text("after_reboot"),
            on_limit: fields.nullable_text("on_limit"),
        }
    }
}

impl FromFields for RemoveWorktree {
    fn take(fields: &mut Fields) -> Self {
        Self { confirm: fields.text("confirm"), loses: fields.texts("loses") }
    }
}

impl FromFields for ReleaseRequest {
    fn take(fields: &mut Fields) -> Self {
        Self { start: fields.flag("start") }
    }
}

impl FromFields for AnswerRequest {
    fn take(fields: &mut Fields) -> Self {
        Self {
            decision: fields.required_text("decision"),
            message: fields.text("message"),
            for_session: fields.flag("for_session").unwrap_or_default(),
        }
    }
}

impl FromFields for MessageRequest {
    fn take(fields: &mut Fields) -> Self {
        Self { text: fields.required_text("text") }
    }
}

impl FromFields for SaveConfig {
    fn take(fields: &mut Fields) -> Self {
        Self {
            edits: fields.required_members("edits").into_iter().collect(),
            hash: fields.required_text("hash"),
        }
    }
}

/// All members of a body, whatever their types.
pub(crate) struct AnyMembers(pub(crate) Map<String, Value>);

impl FromFields for AnyMembers {
    fn take(fields: &mut Fields) -> Self {
        Self(std::mem::take(&mut fields.members))
    }
}

impl FromFields for RestoreRequest {
    fn take(fields: &mut Fields) -> Self {
        Self { ids: fields.required_texts("ids"), parallel: fields.count("parallel") }
    }
}

impl FromFields for SubscribePush {
    fn take(fields: &mut Fields) -> Self {
        let endpoint = fields.required_text("endpoint");
        let mut keys = fields.required_members("keys");
        let mut key = |name: &str| match keys.remove(name) {
            Some(Value::String(text)) => text,
            // Refused as what is no key.
            _ => String::new(),
        };
        let keys = PushKeys { p256dh: key("p256dh"), auth: key("auth") };
        Self { endpoint, keys, label: fields.text("label"), events: fields.texts("events") }
    }
}

impl FromFields for TestNotification {
    fn take(fields: &mut Fields) -> Self {
        Self { entry: entry(fields) }
    }
}

impl FromFields for TestWebhook {
    fn take(fields: &mut Fields) -> Self {
        Self { entry: entry(fields) }
    }
}

impl FromFields for ReplayWebhooks {
    fn take(fields: &mut Fields) -> Self {
        Self { entry: entry(fields), since: fields.text("since") }
    }
}

/// A place in a list; no list is as long as what does not fit.
fn entry(fields: &mut Fields) -> Option<usize> {
    fields.count("entry").map(|entry| usize::try_from(entry).unwrap_or(usize::MAX))
}

impl FromFields for WriteInstructions {
    fn take(fields: &mut Fields) -> Self {
        Self { content: fields.required_text("content"), base_sha256: fields.text("base_sha256") }
    }
}

impl FromFields for CreateProject {
    fn take(fields: &mut Fields) -> Self {
        Self {
            name: fields.required_text("name"),
            git_init: fields.flag("git_init").unwrap_or(false),
        }
    }
}

impl FromFields for StartSignIn {
    fn take(fields: &mut Fields) -> Self {
        Self { mode: fields.required_text("mode") }
    }
}

impl FromFields for SignInCode {
    fn take(fields: &mut Fields) -> Self {
        Self { code: fields.required_text("code") }
    }
}

impl FromFields for ReapRequest {
    fn take(fields: &mut Fields) -> Self {
        Self {
            action: fields.required_text("action"),
            ids: fields.required_texts("ids"),
            confirm: fields.required_text("confirm"),
        }
    }
}

impl FromFields for CloneRequest {
    fn take(fields: &mut Fields) -> Self {
        Self {
            name: fields.required_text("name"),
            url: fields.required_text("url"),
            shallow: fields.flag("shallow").unwrap_or(false),
        }
    }
}

impl FromFields for DismissRequest {
    fn take(fields: &mut Fields) -> Self {
        Self { ids: fields.required_texts("ids") }
    }
}

impl FromFields for IssueTokenRequest {
    fn take(fields: &mut Fields) -> Self {
        Self {
            label: fields.required_text("label"),
            scopes: fields.texts("scopes"),
            expires_at: fields.text("expires_at"),
        }
    }
}

impl FromFields for RotateTokenRequest {
    fn take(fields: &mut Fields) -> Self {
        Self { label: fields.required_text("label") }
    }
}

impl FromFields for TrustAllRequest {
    fn take(fields: &mut Fields) -> Self {
        Self { names: fields.required_texts("names") }
    }
}

impl FromFields for UiPrefs {
    fn take(fields: &mut Fields) -> Self {
        Self { prefs: fields.required_members("prefs"), rev: fields.required_count("rev") }
    }
}

/// The body is JSON and no object.
pub(crate) fn not_an_object() -> Refusal {
    Refusal::schema(vec![SchemaProblem {
        loc: vec!["body".into()],
        msg: "must be an object".into(),
        kind: "object_type".into(),
    }])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    async fn problems(body: Value) -> Vec<SchemaProblem> {
        let refusal = read::<SpawnRequest>(Some(body)).unwrap_err();
        assert_eq!(refusal.status(), 422);
        let bytes = refusal.into_json().into_body().into_bytes().await.unwrap();
        let body: Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(body["code"], "schema");
        serde_json::from_value(body["detail"].clone()).unwrap()
    }

    #[tokio::test]
    async fn every_wrong_member_is_named_with_its_place() {
        let found = problems(json!({"trust": "yes", "name": 5, "channel": ["x"]})).await;
        let places: Vec<(String, &str)> =
            found.iter().map(|p| (p.loc.join("."), p.kind.as_str())).collect();
        assert_eq!(
            places,
            [
                ("body.project".into(), "missing"),
                ("body.channel".into(), "string_type"),
                ("body.trust".into(), "bool_type"),
                ("body.name".into(), "string_type"),
            ]
        );
        assert_eq!(problems(json!([])).await[0].kind, "object_type");
        assert_eq!(problems(json!({"project": null})).await[0].kind, "string_type");
    }

    #[test]
    fn null_and_absence_are_the_same_for_optional_members() {
        let (nulls, _) = read::<SpawnRequest>(Some(
            json!({"project": "a", "trust": null, "name": null, "spawn_mode": null}),
        ))
        .unwrap();
        let (absent, _) = read::<SpawnRequest>(Some(json!({"project": "a"}))).unwrap();
        assert_eq!(nulls, absent);
        let (none, _) = read::<ResumeRequest>(None).unwrap();
        assert_eq!(none, ResumeRequest::default());
    }

    #[test]
    fn a_misspelt_member_is_reported() {
        let (_, unknown) =
            read::<SpawnRequest>(Some(json!({"project": "a", "permision_mode": "plan"}))).unwrap();
        let warnings = unknown_field_warnings(&unknown);
        assert_eq!(warnings.len(), 1);
        assert!(warnings[0].contains("`permision_mode`"), "{warnings:?}");
        let many: Vec<String> = (0..1000).map(|i| i.to_string()).collect();
        assert_eq!(unknown_field_warnings(&many).len(), REPORTED + 1);
    }

    #[test]
    fn a_nul_character_is_refused_by_member_name() {
        let refusal = read::<SpawnRequest>(Some(json!({"project": "a\u{0}"}))).unwrap_err();
        assert_eq!(refusal.status(), 422);
        let refusal = read::<TrustAllRequest>(Some(json!({"names": ["a\u{0}"]}))).unwrap_err();
        assert_eq!(refusal.status(), 422);
    }
}
