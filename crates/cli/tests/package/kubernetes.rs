//! The objects for Kubernetes have the API's types: every field exists there, and has the right kind of value.

use k8s_openapi::Metadata;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::core::v1::{Namespace, PersistentVolumeClaim, PodSpec, ServiceAccount};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

fn documents() -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dist/kubernetes/opentcp.yaml");
    let text = fs::read_to_string(path).expect("the file is there");
    let documents = serde_yaml_ng::Deserializer::from_str(&text);
    documents.map(|one| serde::Deserialize::deserialize(one).expect("it is YAML")).collect()
}

/// The object; it must come back whole, so that a field which the API does not know is noticed.
fn checked<T: DeserializeOwned + Serialize>(document: &Value) -> T {
    let object: T = serde_json::from_value(document.clone()).unwrap_or_else(|error| panic!("{error}: {document}"));
    let mut lost = Vec::new();
    compare("", document, &serde_json::to_value(&object).expect("plain data"), &mut lost);
    assert!(lost.is_empty(), "the API has no such field: {lost:?}");
    object
}

/// Lists what `read` lacks of `written`. Empty lists and tables may be left out.
fn compare(place: &str, written: &Value, read: &Value, lost: &mut Vec<String>) {
    match (written, read) {
        (Value::Object(written), Value::Object(read)) => {
            for (key, value) in written {
                let place = format!("{place}.{key}");
                let is_empty = value.as_array().is_some_and(Vec::is_empty)
                    || value.as_object().is_some_and(serde_json::Map::is_empty);
                match read.get(key) {
                    Some(read) => compare(&place, value, read, lost),
                    None if is_empty => {}
                    None => lost.push(place),
                }
            }
        }
        (Value::Array(written), Value::Array(read)) if written.len() == read.len() => {
            for (i, (one, other)) in written.iter().zip(read).enumerate() {
                compare(&format!("{place}[{i}]"), one, other, lost);
            }
        }
        _ if written == read => {}
        _ => lost.push(place.to_string()),
    }
}

#[test]
fn every_object_has_the_apis_types() {
    let (mut accounts, mut claims, mut pods, mut kinds) = (BTreeSet::new(), BTreeSet::new(), Vec::new(), Vec::new());
    let name = |of: &dyn Fn() -> Option<String>| of().expect("every object has a name");
    for document in &documents() {
        let kind = document["kind"].as_str().expect("a kind").to_string();
        match kind.as_str() {
            "Namespace" => drop(checked::<Namespace>(document)),
            "ServiceAccount" => {
                let account: ServiceAccount = checked(document);
                accounts.insert(name(&|| named(account.metadata())));
                assert_eq!(account.automount_service_account_token, Some(false));
            }
            "Role" => assert!(checked::<Role>(document).rules.unwrap_or_default().is_empty(), "nothing asks the API"),
            "RoleBinding" => drop(checked::<RoleBinding>(document)),
            "PersistentVolumeClaim" => {
                claims.insert(name(&|| named(checked::<PersistentVolumeClaim>(document).metadata())));
            }
            "Deployment" => {
                let spec = checked::<Deployment>(document).spec.expect("a specification");
                let labels = spec.template.metadata.and_then(|metadata| metadata.labels).expect("labels");
                let selected = spec.selector.match_labels.expect("a selector");
                assert!(selected.iter().all(|(key, value)| labels.get(key) == Some(value)), "it selects its own pods");
                pods.push(spec.template.spec.expect("a pod"));
            }
            "DaemonSet" => {
                let spec = checked::<DaemonSet>(document).spec.expect("a specification");
                pods.push(spec.template.spec.expect("a pod"));
            }
            other => panic!("an object of kind {other}"),
        }
        kinds.push(kind);
    }
    assert_eq!(kinds.iter().filter(|kind| *kind == "Deployment").count(), 2, "{kinds:?}");
    assert_eq!(pods.len(), 3);
    for pod in &pods {
        consistent(pod, &accounts, &claims);
    }
}

fn named(metadata: &ObjectMeta) -> Option<String> {
    metadata.name.clone()
}

/// A pod's references lead somewhere, and its commands have these options.
fn consistent(pod: &PodSpec, accounts: &BTreeSet<String>, claims: &BTreeSet<String>) {
    assert!(accounts.contains(pod.service_account_name.as_ref().expect("an account")));
    let volumes = pod.volumes.as_deref().unwrap_or_default();
    let names: BTreeSet<&str> = volumes.iter().map(|volume| volume.name.as_str()).collect();
    let claimed = volumes.iter().filter_map(|volume| volume.persistent_volume_claim.as_ref());
    claimed.for_each(|claim| assert!(claims.contains(&claim.claim_name)));
    for container in pod.containers.iter().chain(pod.init_containers.iter().flatten()) {
        let mounts = container.volume_mounts.iter().flatten();
        mounts.for_each(|mount| assert!(names.contains(mount.name.as_str()), "{}", mount.name));
        let security = container.security_context.as_ref().expect("a security context");
        assert_eq!(security.read_only_root_filesystem, Some(true));
        assert_ne!(security.privileged, Some(true));
        let args = container.args.as_deref().expect("arguments");
        let help = Command::new(env!("CARGO_BIN_EXE_opentcp")).args([&args[0], "--help"]).output().expect("it runs");
        let help = String::from_utf8_lossy(&help.stdout);
        for option in args.iter().filter(|argument| argument.starts_with("--")) {
            assert!(help.contains(option.as_str()), "`opentcp {}` has no {option}", args[0]);
        }
    }
}
