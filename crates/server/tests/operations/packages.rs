//! What packagers take, read by the tools that will read it: the files for Kubernetes.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::scene::{repository_file, repository_path};
use crate::support::setting;

const FOLDER: &str = "ops/kubernetes";
/// Of the schemas.
const VERSION: &str = "1.29.0";
/// Mistakes that people make, each in a file: what stands there, and what stands there then.
const MISTAKES: [(&str, &str, &str); 5] = [
    ("server.yml", "containerPort: 7373", "containerPort: http"),
    ("server.yml", "readinessProbe:", "readynessProbe:"),
    (
        "migrate.yml",
        "restartPolicy: OnFailure",
        "restart_policy: OnFailure",
    ),
    ("autoscaler.yml", "maxReplicas: 6", "maxReplicas: six"),
    ("disruption-budget.yml", "policy/v1", "policy/v9"),
];

/// The manifests: what kustomize reads besides is not for Kubernetes.
fn manifests() -> Vec<PathBuf> {
    let folder = std::fs::read_dir(repository_path(FOLDER)).unwrap();
    let mut files: Vec<PathBuf> = folder.map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|ending| ending == "yml"));
    files.sort();
    assert!(files.len() >= 6, "{files:?}");
    files
}

/// Is every thing in this file as its schema says? And what was said of it.
fn is_valid(file: &Path) -> (bool, String) {
    let output = Command::new(setting("STATIONMASTER_TEST_KUBERNETES_VALIDATE"))
        .args(["--strict", "-k", VERSION])
        .arg(file)
        .output()
        .unwrap();
    let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    let text = std::fs::read_to_string(file).unwrap();
    let things = text.lines().filter(|line| line.starts_with("kind: ")).count();
    let passed = said.lines().filter(|line| line.contains(" passed ")).count();
    (output.status.success() && things > 0 && passed == things, said)
}

#[test]
fn what_goes_to_kubernetes_is_as_its_schemas_say_and_a_mistake_in_it_is_noticed() {
    for file in manifests() {
        let (valid, said) = is_valid(&file);
        assert!(valid, "{said}");
    }
    let folder = tempfile::tempdir().unwrap();
    for (file, right, wrong) in MISTAKES {
        let text = repository_file(&format!("{FOLDER}/{file}"));
        assert_eq!(text.matches(right).count(), 1, "{file}: {right}");
        let broken = folder.path().join(file);
        std::fs::write(&broken, text.replace(right, wrong)).unwrap();
        let (valid, said) = is_valid(&broken);
        assert!(!valid, "{wrong}: {said}");
    }
}

#[test]
fn what_kustomize_makes_of_it_is_as_its_schemas_say_too() {
    let Ok(kustomize) = std::env::var("STATIONMASTER_TEST_KUSTOMIZE") else {
        println!(
            "LEFT OUT: neither kustomize nor a kubectl that knows it is on this machine, and only a release builds one"
        );
        return;
    };
    let verb = if kustomize.ends_with("kubectl") {
        "kustomize"
    } else {
        "build"
    };
    let output = Command::new(kustomize)
        .args([verb, &repository_path(FOLDER)])
        .output()
        .unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complaint}");
    let folder = tempfile::tempdir().unwrap();
    let rendered = folder.path().join("rendered.yml");
    std::fs::write(&rendered, output.stdout).unwrap();
    let (valid, said) = is_valid(&rendered);
    assert!(valid, "{said}");
}

#[test]
fn every_file_for_kubernetes_is_listed_and_every_setting_in_it_is_one_that_the_program_takes() {
    let list = repository_file(&format!("{FOLDER}/kustomization.yaml"));
    let mut names = Vec::new();
    for file in manifests() {
        let name = file.file_name().unwrap().to_str().unwrap();
        assert!(list.contains(&format!("  - {name}\n")), "{name}");
        let text = std::fs::read_to_string(&file).unwrap();
        let variables = text
            .lines()
            .filter_map(|line| line.trim().strip_prefix("- name: "));
        names.extend(
            variables
                .filter(|name| name.starts_with("STATIONMASTER_"))
                .map(str::to_owned),
        );
    }
    let settings = repository_file(&format!("{FOLDER}/settings.env"));
    let mut given: Vec<(&str, &str)> = settings.lines().filter_map(|line| line.split_once('=')).collect();
    for name in &names {
        let value = match name.as_str() {
            "STATIONMASTER_DATABASE_URL" => "postgres://user@host/stationmaster",
            "STATIONMASTER_SERVER_NAME" => "stationmaster-7d9c",
            other => panic!("{other} is set, and this test knows no value for it"),
        };
        given.push((name, value));
    }
    let shown = |given: &[(&str, &str)]| {
        let output = Command::new(env!("CARGO_BIN_EXE_stationmaster"))
            .args(["config", "show"])
            .env_clear()
            .envs(given.iter().copied())
            .output()
            .unwrap();
        let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        (output.status.success(), said)
    };
    let (taken, said) = shown(&given);
    assert!(taken && given.len() > names.len(), "{said}");
    for (name, value) in &given {
        assert!(
            value.starts_with("postgres:") || said.contains(value),
            "{name} is not what it was set to: {said}"
        );
    }
    given.push(("STATIONMASTER_TEMPORAL__ADRESS", "http://temporal-frontend:7233"));
    let (taken, said) = shown(&given);
    assert!(!taken && said.contains("ADRESS"), "{said}");
}
