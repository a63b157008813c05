//! `svc push`: the devices that are notified while the page is closed.

use crate::cli::call::Call;
use crate::cli::exit_code::Exit;
use crate::cli::failure::End;
use crate::cli::options::Listing;
use crate::cli::output::Cell;
use crate::cli::work::{end, look};
use clap::{Args, Subcommand};
use svc_shared::internal::notifications::DeliveryState;
use svc_shared::internal::push::{PushDevice, RemovedPush};

#[derive(Debug, Subcommand)]
pub(crate) enum Push {
    /// List the devices, what each is told of, and when one was last reached.
    #[command(after_help = "Examples:\n  svc push list\n  svc push list --json")]
    List(Listing),
    /// Send a test notification to one device, and say what its push service answered.
    #[command(after_help = "Examples:\n  svc push test 3f2a90c1d4e5b607")]
    Test(NamedDevice),
    /// Notify a device no more.
    #[command(after_help = "\
It can be switched on again only on the device itself, on the page Notifications.

Examples:
  svc push remove 3f2a90c1d4e5b607")]
    Remove(NamedDevice),
}

#[derive(Debug, Args)]
pub(crate) struct NamedDevice {
    /// The id of the device, from `svc push list`.
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `svc push …`.
pub(crate) fn run(call: &Call, command: &Push) -> Result<Exit, End> {
    match command {
        Push::List(listing) => list(call, listing),
        Push::Test(named) => test(call, named),
        Push::Remove(named) => remove(call, named),
    }
}

fn list(call: &Call, listing: &Listing) -> Result<Exit, End> {
    let (found, is_enabled) =
        look(call, async |app| Ok((app.push().list(None).await?, app.push().is_enabled())))?;
    if listing.json {
        call.output.json(&found)?;
        return Ok(Exit::Done);
    }
    if found.is_empty() {
        call.output.note("No device is notified. Switch it on on the page Notifications.");
    } else {
        let rows: Vec<[Cell; 6]> = found.iter().map(row).collect();
        let heads = ["ID", "DEVICE", "SERVICE", "TOLD OF", "LAST REACHED", "LAST ERROR"];
        call.output.table(heads, &rows)?;
    }
    if !is_enabled {
        call.output.note("No device is notified of anything: `push.enabled` is off.");
    }
    Ok(Exit::Done)
}

fn row(device: &PushDevice) -> [Cell; 6] {
    let last = device.last_delivery_at.map_or_else(|| "never".to_owned(), |at| at.to_string());
    [
        device.id.as_str().into(),
        device.label.as_str().into(),
        device.host.as_str().into(),
        device.events.join(", ").into(),
        last.into(),
        device.last_error.as_deref().unwrap_or("-").into(),
    ]
}

fn test(call: &Call, named: &NamedDevice) -> Result<Exit, End> {
    let tested = look(call, async |app| Ok(Box::pin(app.push().test(&named.id)).await?))?;
    let outcome = &tested.outcome;
    let is_accepted = outcome.state == DeliveryState::Accepted;
    if named.json {
        call.output.json(&tested)?;
    } else {
        let result = match &outcome.reason {
            None => format!("accepted ({})", outcome.status.unwrap_or_default()),
            Some(why) => format!("failed: {why}"),
        };
        call.output.note(&result);
    }
    Ok(if is_accepted { Exit::Done } else { Exit::Failed })
}

fn remove(call: &Call, named: &NamedDevice) -> Result<Exit, End> {
    let id = &named.id;
    end(call, async |app| Ok(app.push().remove(id).await?))?;
    if named.json {
        call.output.json(&RemovedPush { id: id.clone(), removed: true })?;
    } else {
        call.output.note(&format!("device {id} is not notified any more"));
    }
    Ok(Exit::Done)
}
