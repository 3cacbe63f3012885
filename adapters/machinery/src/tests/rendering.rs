//! The port's methods, each against the real machinery.

use bronzeward_core::release::MachineType;
use bronzeward_engine::ports::renderer::{
    KubernetesCheck, LIMITS, Placement, PlatformMode, RefusedClass, RenderError, Renderer,
    SourceRole, Step,
};

use super::{beside_others, generated, refusal, renderer, text};

// covers-part: IC-REN-1 (version and checksum are the worker's own build record)
#[tokio::test]
async fn the_renderer_says_which_machinery_it_is_from_its_build_record() {
    let _beside = beside_others().await;
    let renderer = renderer().await;
    let machinery = renderer.describe().await.expect("described");
    assert_eq!(machinery.version, "v1.13.6");
    assert_eq!(
        machinery.checksum.as_deref(),
        Some("h1:0XwJroRMDS8whr2KdxFQuyOJz+Zs4AV9G8oyE0emDJI=")
    );
    assert!(!machinery.replaced);
    assert_eq!(machinery.contract.to_string(), "v1.13");
    assert_eq!(machinery.kubernetes_from, "v1.31.0");
    assert_eq!(machinery.kubernetes_below, "v1.36.99");
    assert_eq!(machinery.limits, LIMITS);
    assert!(renderer.confined().wholly());
    renderer.stop().await;
}

// covers-part: IC-REN-1 (the kubelet's image decides the Kubernetes version)
#[tokio::test]
async fn both_standard_bases_are_valid_in_their_modes_and_named_by_type_and_version() {
    let _beside = beside_others().await;
    let renderer = renderer().await;
    for (base, mode) in [
        ("fixture", PlatformMode::Container),
        ("generated", PlatformMode::Metal),
    ] {
        let composed = renderer
            .compose(&generated(&["-base", base]), &[])
            .await
            .expect("composed");
        let validation = renderer.validate(&composed, mode).await.expect("validated");
        assert!(validation.errors.is_empty() && validation.warnings.is_empty());
        assert!(validation.complete);
        assert_eq!(validation.machine_type, Some(MachineType::ControlPlane));
        assert_eq!(validation.kubernetes, KubernetesCheck::Supported);
        assert_eq!(validation.kubernetes_version.as_deref(), Some("v1.36.2"));
    }
    let container = generated(&["-base", "fixture"]);
    let metal = renderer
        .validate(&container, PlatformMode::Metal)
        .await
        .expect("validated");
    assert_eq!(metal.errors.len(), 1, "metal asks for an install disk");
    renderer.stop().await;
}

#[tokio::test]
async fn a_refusal_names_its_fragment_and_carries_the_message_without_showing_it() {
    let _beside = beside_others().await;
    let renderer = renderer().await;
    let base = generated(&["-type", "worker"]);
    let fragments = [
        text("machine:\n  nodeLabels:\n    a: b\n"),
        text("machine:\n  certSANs: hunter2-in-a-message\n"),
    ];
    let Err(RenderError::Refused(refused)) = renderer.compose(&base, &fragments).await else {
        panic!("a string where a list belongs composes");
    };
    assert_eq!(refused.class, RefusedClass::Load);
    assert_eq!(refused.fragment, Some(1));
    assert_eq!(refused.line, Some(2));
    let message = refused.message.clone().expect("the machinery says why");
    assert!(message.expose().contains("hunter2"));
    let shown = RenderError::Refused(refused);
    assert!(!format!("{shown} {shown:?}").contains("hunter2"));
    renderer.stop().await;
}

#[tokio::test]
async fn a_check_reads_references_as_nulls_and_a_composition_refuses_them() {
    let _beside = beside_others().await;
    let renderer = renderer().await;
    let fragment = text("machine:\n  token: !bwref a/b\n");
    renderer
        .check(SourceRole::Fragment, &fragment)
        .await
        .expect("accepted");
    let composed = renderer
        .compose(&generated(&[]), std::slice::from_ref(&fragment))
        .await;
    assert_eq!(refusal(composed), RefusedClass::LocalTag);
    let base = text("machine:\n  install:\n    $patch: delete\n");
    renderer
        .check(SourceRole::Fragment, &base)
        .await
        .expect("a fragment may delete");
    assert_eq!(
        refusal(renderer.check(SourceRole::Base, &base).await),
        RefusedClass::Load
    );
    renderer.stop().await;
}

#[tokio::test]
async fn secret_fields_come_with_their_places() {
    let _beside = beside_others().await;
    let renderer = renderer().await;
    let fields = renderer
        .secret_fields(SourceRole::Base, &generated(&["-comments"]))
        .await
        .expect("listed");
    assert_eq!(fields.len(), 9);
    let key = |key: &str| Step::Key(key.to_owned());
    assert!(fields.iter().any(|field| field.document == 0
        && field.steps == [key("cluster"), key("etcd"), key("ca"), key("key")]
        && field.placement == Placement::Base64));
    renderer.stop().await;
}

#[tokio::test]
async fn every_stated_limit_refuses_by_its_class() {
    let _beside = beside_others().await;
    let renderer = renderer().await;
    let keys: String = (0..=LIMITS.mapping_keys)
        .map(|key| format!("k{key}: 1\n"))
        .collect();
    let depth = LIMITS.depth as usize + 1;
    for (input, class) in [
        (
            "x".repeat(LIMITS.input_bytes as usize + 1),
            RefusedClass::InputTooLarge,
        ),
        (keys, RefusedClass::TooManyKeys),
        (
            format!("a: {}{}", "[".repeat(depth), "]".repeat(depth)),
            RefusedClass::TooDeep,
        ),
        (
            "---\na: 1\n".repeat(LIMITS.documents as usize + 1),
            RefusedClass::TooManyDocuments,
        ),
    ] {
        assert_eq!(refusal(renderer.parse(&text(&input)).await), class);
    }
    let half = text(&format!(
        "# {}\n",
        "x".repeat(LIMITS.input_bytes as usize / 2)
    ));
    let fragments = [half.clone(), half];
    let answer = renderer.compose(&text("machine: {}\n"), &fragments).await;
    assert_eq!(refusal(answer), RefusedClass::InputTooLarge);
    assert_eq!(renderer.workers_ended(), 0, "a limit costs no worker");
    renderer.stop().await;
}
