//! The rest of the interface: the picture of the link, caching, repeated requests.

use crate::harness::World;
use qrcode::render::svg;
use qrcode::{EcLevel, QrCode};
use reqwest::Method;
use serde_json::json;

#[tokio::test]
async fn the_picture_of_the_link_holds_the_link_and_is_treated_as_one() {
    let world = World::new();
    world.project("app");
    let server = world.serve().await;
    let id = server.client.run("app").await.instance_id.to_string();
    let qr = format!("/api/instances/{id}/qr");
    let link = server.client.post(&format!("/api/instances/{id}/connect")).await.expect(200);
    let ask = server.client.request(Method::GET, &qr).header("accept-encoding", "br, gzip");
    let picture = server.client.send(ask).await.expect(200);
    assert_eq!(picture.header("content-type"), Some("image/svg+xml"));
    assert_eq!(picture.header("cache-control"), Some("no-store"));
    assert_eq!(picture.header("content-encoding"), None);
    let url = link.json()["url"].as_str().unwrap().to_owned();
    let code = QrCode::with_error_correction_level(&url, EcLevel::M).unwrap();
    let wanted = code.render::<svg::Color<'_>>().module_dimensions(4, 4).build();
    assert_eq!(picture.text(), wanted);
    let head = server.client.request(Method::HEAD, &qr);
    let head = server.client.send(head).await.expect(200);
    assert_eq!((head.body.len(), head.header("content-type")), (0, Some("image/svg+xml")));
    // By project name too, like every reference; never below the stable prefix.
    server.client.get("/api/instances/app/qr").await.expect(200);
    server.client.get(&format!("/api/v1/instances/{id}/qr")).await.expect(404);

    server.client.stop(&id).await.expect(200);
    assert_eq!(server.client.get(&qr).await.refused(409), "invalid_value");
    assert_eq!(
        server.client.get("/api/instances/absent/qr").await.refused(404),
        "unknown_instance"
    );
    server.stop().await;

    world.configure(json!({ "ui": { "enabled": false } }));
    let server = world.serve().await;
    assert_eq!(server.client.get(&qr).await.refused(404), "not_found");
}
