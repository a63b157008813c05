//! The document of preferences.

use crate::support::*;
use svc_store::UiPrefsRow;

#[tokio::test]
async fn of_two_changes_made_on_the_same_document_one_is_written() {
    let dir = state_dir();
    let store = open(dir.path()).await;
    assert_eq!(store.ui_prefs().await.unwrap(), None);
    assert!(!store.save_ui_prefs(3, "{}").await.unwrap(), "there is no third one");
    assert!(store.save_ui_prefs(0, r#"{"theme":"dark"}"#).await.unwrap());
    assert!(!store.save_ui_prefs(0, "{}").await.unwrap());
    assert!(store.save_ui_prefs(1, r#"{"theme":"light"}"#).await.unwrap());
    assert!(!store.save_ui_prefs(1, "{}").await.unwrap());
    let kept = UiPrefsRow { rev: 2, prefs: r#"{"theme":"light"}"#.to_owned() };
    assert_eq!(store.ui_prefs().await.unwrap(), Some(kept.clone()));
    store.close().await;
    let store = open(dir.path()).await;
    assert_eq!(store.ui_prefs().await.unwrap(), Some(kept), "it is on disk");
    store.close().await;
}
