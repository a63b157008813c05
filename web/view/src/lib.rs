//! The page's `view!`: the notation of Leptos, which becomes calls of the functions in the page's
//! `dom` module instead of one type per element. Those functions exist once in the module, however
//! many views there are.

use proc_macro::TokenStream;
use proc_macro2::TokenStream as Tokens;
use quote::{format_ident, quote};
use rstml::node::{KeyedAttribute, Node, NodeAttribute, NodeElement};
use syn::spanned::Spanned as _;

/// Events that Leptos has no type for.
const OF_NO_KIND: [&str; 1] = ["cancel"];

/// Elements, texts, `{expressions}` and components, as `crate::dom::AnyView`.
///
/// Attributes take whatever `crate::dom::IntoValue` takes; `class:name`, `style:name`,
/// `prop:name`, `on:event` and `node_ref` are what they are in Leptos.
#[proc_macro]
pub fn view(input: TokenStream) -> TokenStream {
    let nodes = match rstml::parse2(input.into()) {
        Ok(nodes) => nodes,
        Err(error) => return error.to_compile_error().into(),
    };
    whole(&nodes).unwrap_or_else(|error| error.to_compile_error()).into()
}

fn whole(nodes: &[Node]) -> syn::Result<Tokens> {
    let views = nodes.iter().map(one).collect::<syn::Result<Vec<_>>>()?;
    Ok(match views.as_slice() {
        [one] => one.clone(),
        _ => quote! { crate::dom::AnyView::many(::std::vec![#(#views),*]) },
    })
}

fn one(node: &Node) -> syn::Result<Tokens> {
    match node {
        Node::Element(element) if is_component(element) => component(element),
        Node::Element(element) => plain(element),
        Node::Fragment(fragment) => whole(&fragment.children),
        Node::Block(block) => Ok(quote! {
            crate::dom::IntoView::into_view(#[allow(unused_braces)] #block)
        }),
        Node::Text(text) => {
            let text = &text.value;
            Ok(quote! { crate::dom::AnyView::text(#text) })
        }
        Node::RawText(text) => {
            let text = text.to_string_best();
            Ok(quote! { crate::dom::AnyView::text(#text) })
        }
        other => Err(syn::Error::new(other.span(), "this has no place in a view")),
    }
}

fn is_component(element: &NodeElement<rstml::Infallible>) -> bool {
    let name = element.name().to_string();
    name.rsplit(':').next().is_some_and(|name| name.trim().starts_with(char::is_uppercase))
}

fn plain(element: &NodeElement<rstml::Infallible>) -> syn::Result<Tokens> {
    let tag = element.name().to_string();
    let attributes = keyed(element)?.into_iter().map(attribute).collect::<syn::Result<Vec<_>>>()?;
    let children = element.children.iter().map(one).collect::<syn::Result<Vec<_>>>()?;
    Ok(quote! {{
        let mut element = crate::dom::El::new(#tag);
        #(#attributes)*
        #(element.child(#children);)*
        element.done()
    }})
}

fn keyed<'a>(element: &'a NodeElement<rstml::Infallible>) -> syn::Result<Vec<&'a KeyedAttribute>> {
    let only_keyed = |attribute: &'a NodeAttribute| match attribute {
        NodeAttribute::Attribute(keyed) => Ok(keyed),
        other => Err(syn::Error::new(other.span(), "an attribute has a name")),
    };
    element.attributes().iter().map(only_keyed).collect()
}

fn attribute(attribute: &KeyedAttribute) -> syn::Result<Tokens> {
    let key = attribute.key.to_string();
    let value = attribute.value().map_or_else(|| quote! { true }, |value| quote! { #value });
    if let Some(event) = key.strip_prefix("on:") {
        if OF_NO_KIND.contains(&event) {
            return Ok(quote! { element.hear(#event, #value); });
        }
        let event = format_ident!("{event}", span = attribute.key.span());
        return Ok(quote! { crate::dom::on(&mut element, ::leptos::ev::#event, #value); });
    }
    let (kind, name) = match key.split_once(':') {
        None if key == "node_ref" => return Ok(quote! { element.known_as(#value); }),
        None => ("Attribute", key.as_str()),
        Some(("class", name)) => ("Class", name),
        Some(("prop", name)) => ("Property", name),
        Some(("style", name)) => ("Style", name),
        Some(_) => return Err(syn::Error::new(attribute.key.span(), "unknown kind of attribute")),
    };
    let kind = format_ident!("{kind}");
    Ok(quote! {
        crate::dom::IntoValue::put(#value, &mut element, crate::dom::Kind::#kind, #name);
    })
}

fn component(element: &NodeElement<rstml::Infallible>) -> syn::Result<Tokens> {
    let name = element.name();
    let props = keyed(element)?.into_iter().map(|attribute| {
        let key = &attribute.key;
        let value = attribute.value().map_or_else(|| quote! { #key }, |value| quote! { #value });
        quote! { .#key(#[allow(unused_braces)] { #value }) }
    });
    let children = if element.children.is_empty() {
        quote! {}
    } else {
        let children = whole(&element.children)?;
        quote! { .children(::std::boxed::Box::new(move || #children)) }
    };
    Ok(quote! {
        crate::dom::IntoView::into_view(::leptos::component::component_view(
            #[allow(clippy::needless_borrows_for_generic_args)]
            &#name,
            ::leptos::component::component_props_builder(&#name) #(#props)* #children .build(),
        ))
    })
}
