//! Generates the client from the description in the file that `SVC_OPENAPI` names.

use progenitor::{GenerationSettings, Generator, InterfaceStyle};
use serde_json::{Value, json};
use std::{env, fs};

fn main() {
    println!("cargo:rerun-if-env-changed=SVC_OPENAPI");
    let file = env::var("SVC_OPENAPI").expect("SVC_OPENAPI names the file");
    println!("cargo:rerun-if-changed={file}");
    let mut described: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();

    // progenitor knows one type of refusal for an operation; svc has one for each status.
    let kinds = ["Error", "AmbiguousError", "SchemaError"];
    let kinds = kinds.map(|kind| json!({ "$ref": format!("#/components/schemas/{kind}") }));
    described["components"]["schemas"]["Refusal"] = json!({ "oneOf": kinds });
    for path in described["paths"].as_object_mut().unwrap().values_mut() {
        for operation in path.as_object_mut().unwrap().values_mut() {
            for (status, answer) in operation["responses"].as_object_mut().unwrap() {
                if status.starts_with(['4', '5']) {
                    let schema = json!({ "$ref": "#/components/schemas/Refusal" });
                    answer["content"]["application/json"]["schema"] = schema;
                }
            }
        }
    }

    let described = serde_json::from_value(described).unwrap();
    let mut settings = GenerationSettings::default();
    settings.with_interface(InterfaceStyle::Builder);
    let code = Generator::new(&settings).generate_tokens(&described).unwrap();
    let code = prettyplease::unparse(&syn::parse2(code).unwrap());
    fs::write(format!("{}/svc.rs", env::var("OUT_DIR").unwrap()), code).unwrap();
}
