//! A record that says "stopped" while its process lives (F48).
//!
//! A manual change of the database or a restored backup makes one. Whatever is asked for next, no
//! second bridge starts beside the first.

use crate::harness::{Process, World, gone};

/// How the record is ended on paper.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Edit {
    /// With a deliberate stop.
    Stopped,
    /// Without one.
    Died,
}

async fn end_on_paper(world: &World, edit: Edit) {
    let (switch, reason) = match edit {
        Edit::Stopped => (1, "operator_stop"),
        Edit::Died => (0, "died_unsupervised"),
    };
    let edit = format!(
        "UPDATE bridges SET status = 'stopped', phase = 'exited', ended_at = 2, \
         intentional_stop = {switch}, exit_reason = '{reason}', revision = revision + 1"
    );
    assert_eq!(world.sql(&edit).await.unwrap(), 1);
}

fn one(world: &World) -> Process {
    let bridges = world.bridges_of("app");
    assert_eq!(bridges.len(), 1, "{bridges:?}");
    bridges.into_iter().next().unwrap()
}

#[tokio::test]
async fn f48_a_resume_or_a_launch_finds_the_process_of_a_record_that_says_it_ended() {
    for ask in ["resume", "launch"] {
        let world = World::new();
        world.project("app");
        let server = world.serve().await;
        let id = server.client.run("app").await.instance_id;
        let first = one(&world);
        end_on_paper(&world, Edit::Died).await;
        let answer = match ask {
            "resume" => server.client.resume(id.as_str()).await,
            _ => server.client.launch("app").await,
        };
        let answer = answer.expect(200).json();
        assert_eq!((&answer["created"], &answer["generation"]), (&false.into(), &1.into()));
        assert_eq!(one(&world).pid, first.pid, "{ask}: it works on");
        let mut page = server.events().await;
        page.until_status("app", "running").await;
        assert_eq!(world.agree().await.rows.len(), 1, "{ask}");
        server.client.stop("app").await.expect(200);
        gone(&first).await;
    }
}

#[tokio::test]
async fn f48_a_stop_that_stands_on_record_only_is_carried_out_before_the_next_generation() {
    for ask in ["resume", "launch"] {
        let world = World::new();
        world.project("app");
        let server = world.serve().await;
        let id = server.client.run("app").await.instance_id;
        let first = one(&world);
        end_on_paper(&world, Edit::Stopped).await;
        let answer = match ask {
            "resume" => server.client.resume(id.as_str()).await.expect(200),
            _ => server.client.launch("app").await.expect(201),
        };
        assert_eq!(answer.json()["created"], true, "{ask}");
        assert!(!first.is_alive(), "{ask}: the first is over");
        assert_ne!(one(&world).pid, first.pid, "{ask}");
        world.agree().await;
    }
}

#[tokio::test]
async fn f48_a_command_without_a_service_finds_the_process_too() {
    let world = World::new();
    world.project("app");
    let server = world.serve().await;
    let id = server.client.run("app").await.instance_id.to_string();
    let first = one(&world);
    server.kill().await;
    end_on_paper(&world, Edit::Died).await;
    for command in [["resume", id.as_str()], ["spawn", "app"]] {
        let ran = world.cli(&command).await;
        assert_eq!(one(&world).pid, first.pid, "{command:?}: {ran:?}");
    }
    let server = world.serve().await;
    let mut page = server.events().await;
    page.until_status("app", "running").await;
    world.agree().await;
    server.client.stop(&id).await.expect(200);
}
