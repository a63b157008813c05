// What the gallery shows: invented records, as the service writes them. A record is its kind's
// usual members with what is said of it laid over them. A test of the page compares the shapes.
const SAMPLES = {
 "approval": {
  "instance_id": "6f0b3c21-0a3b-4c5d-8e9f-001122334455",
  "conversation": null,
  "request_id": "1f2e3d4c-0a3b-4c5d-8e9f-001122334455",
  "project": "atlas-api",
  "subtype": "can_use_tool",
  "tool": "Bash",
  "summary": "git push origin release/2.4 --follow-tags",
  "truncated": true,
  "since": "2026-11-21T08:05:35Z",
  "expires_at": null,
  "decision": null,
  "reason": null,
  "message": null,
  "answered_at": null,
  "actor": null,
  "request": {
   "kind": "command",
   "text": "git push origin release/2.4 --follow-tags",
   "path": null,
   "host": null,
   "note": "Publish the release branch with its tags",
   "directory": "/home/me/projects/atlas-api",
   "edits": [],
   "raw": "{\n  \"command\": \"git push origin release/2.4 --follow-tags\",\n  \"description\": \"Publish the release branch with its tags\"\n}",
   "masked": false,
   "left_out": 0
  }
 },
 "approval_edit": {
  "instance_id": null,
  "conversation": null,
  "request_id": "edit",
  "project": "atlas-api",
  "subtype": "can_use_tool",
  "tool": "Edit",
  "summary": "/home/me/projects/atlas-api/src/retry.rs",
  "truncated": true,
  "since": "2026-11-21T08:03:35Z",
  "expires_at": "2026-11-21T08:13:35Z",
  "decision": "deny",
  "reason": null,
  "message": "Keep the pause before the last attempt, and say in the commit why it is there.",
  "answered_at": "2026-11-21T08:05:01Z",
  "actor": "page",
  "request": {
   "kind": "edit",
   "text": "",
   "path": "/home/me/projects/atlas-api/src/retry.rs",
   "host": null,
   "note": "The sleep makes the test slow and hides permanent errors.",
   "directory": "/home/me/projects/atlas-api",
   "edits": [
    {
     "old": "for attempt in 0..self.limit {\n    match self.call().await {\n        Ok(v) => return Ok(v),\n        Err(_) => sleep(2).await,\n    }\n}\n",
     "new": "for attempt in 0..self.limit {\n    match self.call().await {\n        Ok(v) => return Ok(v),\n        Err(e) if !e.is_transient() => return Err(e),\n        Err(_) => clock.advance(backoff(attempt)).await,\n    }\n}\n",
     "line": 38,
     "everywhere": false
    },
    {
     "old": "use std::thread::sleep;\n",
     "new": "",
     "line": null,
     "everywhere": true
    }
   ],
   "raw": "{\n  \"file_path\": \"/home/me/projects/atlas-api/src/retry.rs\"\n}",
   "masked": true,
   "left_out": 20480
  }
 },
 "now": "2026-11-21T08:07:35Z",
 "instance": {
  "instance_id": "",
  "project": "",
  "label": "",
  "channel": "remote-control",
  "status": "running",
  "resume_mode": "standard",
  "spawn_mode": "same-dir",
  "permission_mode": "default",
  "sandbox_mode": "default",
  "session_ref": null,
  "environment_ref": null,
  "connect": {
   "available": true,
   "kind": "session"
  },
  "process_id": null,
  "worktree_name": null,
  "bridge_pid": 4700,
  "keeper_pid": null,
  "agent_pid": null,
  "status_since": "2026-11-21T08:07:35Z",
  "started_at": "2026-11-21T08:07:35Z",
  "ended_at": null,
  "generation": 1,
  "exit_reason": null,
  "exit_signal": null,
  "phase": "ready",
  "origin": "spawned",
  "quarantined": null,
  "restart": {
   "policy": "never",
   "state": "idle",
   "attempt": 0,
   "next_at": null,
   "crashes_in_window": 0
  },
  "intentional_stop": false,
  "adopted": false,
  "is_orphan": false,
  "agent_version": "2.1.197",
  "error_detail": null,
  "exit_code": null,
  "notice": null,
  "resumable": false,
  "resume_blocked": null,
  "reuse_expires_at": null,
  "has_log": true,
  "link": { "state": "up", "since": "2026-03-01T10:20:30.000Z", "reason": null, "source": "debug_file" },
  "activity": null,
  "limit": null,
  "on_limit": "wait",
  "stranded": 0,
  "pending_permissions": [],
  "last_event_seq": 0
 },
 "session": {
  "pid": 4711,
  "cwd": "/srv/projects/web-frontend",
  "kind": "interactive",
  "state": "working",
  "name": null,
  "waiting_for": null,
  "started_at": 1795247795000,
  "session_ref": null,
  "parent_instance": null,
  "attribution": "tracked"
 },
 "job": {
  "id": "",
  "project": null,
  "state": "working",
  "detail": "",
  "tempo": "active",
  "needs": null,
  "result": null,
  "intent": "",
  "name": null,
  "cwd": null,
  "session_ref": "5b1d0c77e2a94f60",
  "remote_registered": false,
  "has_transcript": true,
  "cli_version": "2.1.197",
  "created_at": "2026-11-21T07:07:35Z",
  "updated_at": "2026-11-21T08:05:35Z",
  "worker_pid": null,
  "worker_alive": false
 },
 "project": {
  "name": "",
  "path": "",
  "is_git_repo": true,
  "has_claude_md": false,
  "has_claude_dir": false,
  "trust_state": "trusted",
  "allow_bypass_permissions": false,
  "alias_of": null
 },
 "instances": {
  "3a375c2e-0a3b-4c5d-8e9f-001122334455": {
   "project": "web-frontend",
   "label": "nightly checks",
   "resume_mode": "pty",
   "status": "running",
   "spawn_mode": "worktree",
   "connect": {
    "available": true,
    "kind": "session"
   },
   "status_since": "2026-11-21T07:49:35Z",
   "started_at": "2026-11-21T07:49:31Z",
   "generation": 2
  },
  "51b0d9aa-0a3b-4c5d-8e9f-001122334455": {
   "project": "docs-site",
   "label": "docs-site",
   "status": "starting",
   "phase": "registering",
   "status_since": "2026-11-21T08:07:23Z",
   "started_at": "2026-11-21T08:07:23Z",
   "connect": {
    "available": false,
    "kind": null
   }
  },
  "7c11e2f4-0a3b-4c5d-8e9f-001122334455": {
   "project": "api-gateway",
   "label": "api-gateway",
   "status": "running",
   "status_since": "2026-11-21T06:02:35Z",
   "started_at": "2026-11-21T06:02:32Z",
   "connect": {
    "available": true,
    "kind": "session"
   }
  },
  "8d20a3b6-0a3b-4c5d-8e9f-001122334455": {
   "project": "release-tools-of-the-platform-team-with-a-name-that-does-not-fit-in-a-row",
   "label": "a label that is too long as well",
   "status": "running",
   "permission_mode": "bypassPermissions",
   "adopted": true,
   "origin": "adopted",
   "status_since": "2026-11-20T06:07:35Z",
   "started_at": "2026-11-20T06:07:35Z",
   "connect": {
    "available": false,
    "kind": null
   },
   "agent_version": null,
   "notice": "Its link cannot be read: it was started by another program."
  },
  "9e4f1077-0a3b-4c5d-8e9f-001122334455": {
   "project": "billing-worker",
   "label": "billing-worker",
   "status": "running",
   "phase": "stopping",
   "status_since": "2026-11-21T08:07:14Z",
   "started_at": "2026-11-21T07:07:35Z"
  },
  "2c4e6a80-0a3b-4c5d-8e9f-001122334455": {
   "project": "api-gateway",
   "label": "rate limits",
   "resume_mode": "pty",
   "spawn_mode": "worktree",
   "worktree_name": "svc-2c4e6a80",
   "keeper_pid": 4750,
   "status": "running",
   "status_since": "2026-11-21T07:27:35Z",
   "started_at": "2026-11-21T07:27:35Z",
   "link": { "state": "down", "since": "2026-11-21T08:02:35Z", "reason": "HTTP 503 from the remote service", "source": "debug_file" }
  },
  "6f0b3c21-0a3b-4c5d-8e9f-001122334455": {
   "project": "atlas-api",
   "label": "release 2.4",
   "channel": "hosted",
   "process_id": "p-6f0b3c21",
   "status": "running",
   "connect": {
    "available": false,
    "kind": null
   },
   "session_ref": "5be2960c11d4a7f3",
   "has_log": false,
   "agent_version": null,
   "status_since": "2026-11-21T07:47:35Z",
   "started_at": "2026-11-21T07:47:35Z",
   "pending_permissions": [
    {
     "request_id": "1f2e3d4c-0a3b-4c5d-8e9f-001122334455",
     "subtype": "can_use_tool",
     "since": "2026-11-21T08:05:35Z",
     "tool": "Bash",
     "summary": "git push origin release/2.4 --follow-tags",
     "truncated": false,
     "expires_at": null
    }
   ]
  },
  "a1c25d38-0a3b-4c5d-8e9f-001122334455": {
   "project": "crash-demo",
   "label": "crash-demo",
   "status": "crashed",
   "phase": "exited",
   "bridge_pid": null,
   "connect": {
    "available": false,
    "kind": null
   },
   "status_since": "2026-11-21T08:03:35Z",
   "started_at": "2026-11-21T04:51:35Z",
   "ended_at": "2026-11-21T08:03:35Z",
   "exit_reason": "killed",
   "exit_signal": 9,
   "resumable": true,
   "stranded": 1,
   "error_detail": "08:03:02 worker 4: reading fixtures\n08:03:29 worker 4: 3.8 GiB resident\n08:03:31 worker 4: allocation of 536870912 bytes failed\nout of memory: worker 4"
  },
  "b3347fe9-0a3b-4c5d-8e9f-001122334455": {
   "project": "infra-terraform",
   "label": "infra-terraform",
   "status": "error",
   "phase": "exited",
   "bridge_pid": null,
   "connect": {
    "available": false,
    "kind": null
   },
   "status_since": "2026-11-21T07:27:35Z",
   "started_at": "2026-11-21T07:27:35Z",
   "ended_at": "2026-11-21T07:27:35Z",
   "exit_reason": "binary_not_found",
   "exit_code": 127,
   "resume_blocked": "no_session",
   "error_detail": "sh: 1: exec: claude: not found\nclaude: command not found"
  },
  "c40988aa-0a3b-4c5d-8e9f-001122334455": {
   "project": "blog",
   "label": "blog",
   "status": "crashed",
   "phase": "exited",
   "bridge_pid": null,
   "connect": {
    "available": false,
    "kind": null
   },
   "status_since": "2026-11-21T07:58:35Z",
   "started_at": "2026-11-21T07:58:05Z",
   "ended_at": "2026-11-21T07:58:35Z",
   "exit_code": 1,
   "exit_reason": "network",
   "resumable": true,
   "quarantined": {
    "kind": "crash-loop",
    "code": "restart_quarantined"
   },
   "restart": {
    "policy": "on-crash",
    "state": "quarantined",
    "attempt": 5,
    "next_at": null,
    "crashes_in_window": 5
   },
   "error_detail": "connect: network is unreachable"
  },
  "d51a99bb-0a3b-4c5d-8e9f-001122334455": {
   "project": "ledger",
   "label": "ledger",
   "status": "running",
   "status_since": "2026-11-21T05:07:35Z",
   "started_at": "2026-11-21T05:07:35Z",
   "quarantined": {
    "kind": "identity",
    "code": "unkillable"
   },
   "connect": {
    "available": false,
    "kind": null
   }
  },
  "e62baacc-0a3b-4c5d-8e9f-001122334455": {
   "project": "thesis-latex",
   "label": "thesis-latex",
   "status": "stopped",
   "phase": "exited",
   "bridge_pid": null,
   "connect": {
    "available": false,
    "kind": null
   },
   "status_since": "2026-11-21T06:07:35Z",
   "started_at": "2026-11-20T23:07:35Z",
   "ended_at": "2026-11-21T06:07:35Z",
   "exit_reason": "host_restarted",
   "resumable": true,
   "session_ref": "91c4a0e2b7d35f18"
  },
  "f73cbbdd-0a3b-4c5d-8e9f-001122334455": {
   "project": "notes",
   "label": "notes",
   "status": "stopped",
   "phase": "exited",
   "bridge_pid": null,
   "connect": {
    "available": false,
    "kind": null
   },
   "status_since": "2026-11-21T03:07:35Z",
   "started_at": "2026-11-21T02:07:35Z",
   "ended_at": "2026-11-21T03:07:35Z",
   "exit_reason": "operator_stop",
   "intentional_stop": true,
   "resumable": true,
   "session_ref": "0f5e22a1c98b7d44"
  },
  "184dccee-0a3b-4c5d-8e9f-001122334455": {
   "project": "api-gateway",
   "label": "before the upgrade",
   "status": "stopped",
   "phase": "exited",
   "bridge_pid": null,
   "connect": {
    "available": false,
    "kind": null
   },
   "status_since": "2026-11-21T01:07:35Z",
   "started_at": "2026-11-21T00:07:35Z",
   "ended_at": "2026-11-21T01:07:35Z",
   "exit_reason": "operator_stop",
   "intentional_stop": true,
   "resume_blocked": "standard_already_live"
  },
  "295eddff-0a3b-4c5d-8e9f-001122334455": {
   "project": "scratch",
   "label": "scratch",
   "status": "stopped",
   "phase": "exited",
   "bridge_pid": null,
   "connect": {
    "available": false,
    "kind": null
   },
   "status_since": "2026-11-19T08:07:35Z",
   "started_at": "2026-11-19T07:07:35Z",
   "ended_at": "2026-11-19T08:07:35Z",
   "exit_reason": "session_ended",
   "spawn_mode": "session",
   "resume_blocked": "not_trusted"
  }
 },
 "hosted": [
  { "type": "hello", "stream": "s1", "first_seq": 1, "last_seq": 5 },
  { "type": "frame", "event_seq": 1, "frame": { "type": "user", "message": { "content": "Make permanent errors fail at once. Then push the release branch with its tags." } } },
  { "type": "frame", "event_seq": 2, "frame": { "type": "assistant", "message": { "content": [{ "type": "text", "text": "I run the tests first." }, { "type": "tool_use", "id": "t1", "name": "Bash", "input": { "command": "cargo test retry" } }] } } },
  { "type": "frame", "event_seq": 3, "frame": { "type": "user", "message": { "content": [{ "type": "tool_result", "tool_use_id": "t1", "content": "18 passed", "is_error": false }] } } },
  { "type": "frame", "event_seq": 4, "frame": { "type": "assistant", "message": { "content": [{ "type": "text", "text": "The tests pass. Next I push the branch. That needs your permission." }] } } }
 ],
 "tracked": {
  "3a375c2e-0a3b-4c5d-8e9f-001122334455": [
   {
    "name": "fix the login form"
   },
   {
    "pid": 4712,
    "state": "blocked",
    "name": "read the docs",
    "waiting_for": "Edit src/login.ts",
    "started_at": 1795248215000
   }
  ]
 },
 "external": {
  "notes": [
   {
    "cwd": "/srv/projects/notes",
    "state": "",
    "name": "in a terminal",
    "attribution": "external",
    "started_at": 1795246475000
   }
  ]
 },
 "adoptable": [
  "ledger"
 ],
 "jobs": {
  "3c509237": {
   "id": "3c509237",
   "state": "blocked",
   "project": "billing-worker",
   "intent": "Cut the release 2.4 and push the branch",
   "needs": "Bash: git push origin release/2.4",
   "worker_alive": true,
   "worker_pid": 5120,
   "updated_at": "2026-11-21T08:05:35Z"
  },
  "4d61a348": {
   "id": "4d61a348",
   "state": "working",
   "project": "web-frontend",
   "intent": "Migrate the tests to the new runner",
   "detail": "12 of 40 files",
   "worker_alive": true,
   "worker_pid": 5121,
   "remote_registered": true,
   "updated_at": "2026-11-21T08:07:05Z"
  },
  "5e72b459": {
   "id": "5e72b459",
   "state": "done",
   "project": "docs-site",
   "intent": "List the pages that nothing links to",
   "result": "Three pages have no link to them: changelog-2019, draft-pricing and old-faq.",
   "updated_at": "2026-11-21T07:17:35Z"
  },
  "6f83c56a": {
   "id": "6f83c56a",
   "state": "failed",
   "project": "infra-terraform",
   "intent": "Explain the drift of the staging plan",
   "updated_at": "2026-11-21T06:07:35Z"
  },
  "7094d67b": {
   "id": "7094d67b",
   "state": "stopped",
   "project": "notes",
   "intent": "Sort the inbox by topic",
   "updated_at": "2026-11-21T05:07:35Z"
  },
  "81a5e78c": {
   "id": "81a5e78c",
   "state": "lost",
   "project": "scratch",
   "intent": "Try the new parser on every sample",
   "session_ref": null,
   "updated_at": "2026-11-21T04:07:35Z"
  }
 },
 "projects": {
  "api-gateway": {
   "name": "api-gateway",
   "path": "/srv/projects/api-gateway",
   "has_claude_md": true
  },
  "atlas-api": {
   "name": "atlas-api",
   "path": "/srv/projects/atlas-api"
  },
  "billing-worker": {
   "name": "billing-worker",
   "path": "/srv/projects/billing-worker"
  },
  "blog": {
   "name": "blog",
   "path": "/srv/projects/blog"
  },
  "crash-demo": {
   "name": "crash-demo",
   "path": "/srv/projects/crash-demo"
  },
  "docs-site": {
   "name": "docs-site",
   "path": "/srv/projects/docs-site"
  },
  "infra-terraform": {
   "name": "infra-terraform",
   "path": "/srv/projects/infra-terraform"
  },
  "ledger": {
   "name": "ledger",
   "path": "/srv/projects/ledger"
  },
  "notes": {
   "name": "notes",
   "path": "/srv/projects/notes",
   "is_git_repo": false
  },
  "release-tools-of-the-platform-team-with-a-name-that-does-not-fit-in-a-row": {
   "name": "release-tools-of-the-platform-team-with-a-name-that-does-not-fit-in-a-row",
   "path": "/srv/projects/release-tools-of-the-platform-team-with-a-name-that-does-not-fit-in-a-row"
  },
  "scratch": {
   "name": "scratch",
   "path": "/srv/projects/scratch",
   "trust_state": "untrusted",
   "has_claude_md": true
  },
  "thesis-latex": {
   "name": "thesis-latex",
   "path": "/srv/projects/thesis-latex",
   "is_git_repo": false
  },
  "web-frontend": {
   "name": "web-frontend",
   "path": "/srv/projects/web-frontend",
   "has_claude_md": true,
   "has_claude_dir": true
  }
 },
 "health": {
  "status": "ok",
  "version": "1.0.0",
  "claude_ok": true,
  "claude_version": "2.1.197",
  "claude_login_ok": true,
  "claude_login_method": "subscription",
  "claude_login_expires_at": null,
  "instances_running": 6
 },
 "terminal": {"live":{"gen":2,"seq":812,"base":null,"full":true,"state":"ready","error":null,"cols":120,"rows":40,"cursor":{"x":4,"y":26},"rows_changed":[{"y":0,"wrapped":false,"runs":[{"t":"> ","fg":6,"bg":null,"a":0,"w":2},{"t":"The login redirect loses the session when the clock changes. Find out why and fix it.","fg":15,"bg":null,"a":1,"w":85}]},{"y":2,"wrapped":false,"runs":[{"t":"● ","fg":2,"bg":null,"a":0,"w":2},{"t":"Plan","fg":15,"bg":null,"a":1,"w":4}]},{"y":3,"wrapped":false,"runs":[{"t":"  └  ","fg":null,"bg":null,"a":0,"w":5},{"t":"✔","fg":2,"bg":null,"a":0,"w":1},{"t":" reproduce with a test that moves the clock","fg":8,"bg":null,"a":0,"w":43}]},{"y":4,"wrapped":false,"runs":[{"t":"     ","fg":null,"bg":null,"a":0,"w":5},{"t":"✔","fg":2,"bg":null,"a":0,"w":1},{"t":" guard the age comparison","fg":8,"bg":null,"a":0,"w":25}]},{"y":5,"wrapped":false,"runs":[{"t":"     ","fg":null,"bg":null,"a":0,"w":5},{"t":"▸","fg":3,"bg":null,"a":0,"w":1},{"t":" run the auth tests","fg":null,"bg":null,"a":0,"w":19}]},{"y":6,"wrapped":false,"runs":[{"t":"     ","fg":null,"bg":null,"a":0,"w":5},{"t":"□ look for the same pattern in cookie.ts","fg":8,"bg":null,"a":0,"w":40}]},{"y":8,"wrapped":false,"runs":[{"t":"● ","fg":4,"bg":null,"a":0,"w":2},{"t":"Read","fg":15,"bg":null,"a":1,"w":4},{"t":"(src/auth/session.ts)","fg":null,"bg":null,"a":0,"w":21}]},{"y":9,"wrapped":false,"runs":[{"t":"  └  214 lines","fg":8,"bg":null,"a":0,"w":14}]},{"y":11,"wrapped":false,"runs":[{"t":"● ","fg":2,"bg":null,"a":0,"w":2},{"t":"Edit","fg":15,"bg":null,"a":1,"w":4},{"t":"(src/auth/session.ts)","fg":null,"bg":null,"a":0,"w":21}]},{"y":12,"wrapped":false,"runs":[{"t":"  └  3 lines added, 1 removed","fg":8,"bg":null,"a":0,"w":29}]},{"y":13,"wrapped":false,"runs":[{"t":"     41 ","fg":8,"bg":null,"a":0,"w":8},{"t":"  const age = now() - issued","fg":null,"bg":null,"a":0,"w":28}]},{"y":14,"wrapped":false,"runs":[{"t":"     42 ","fg":8,"bg":null,"a":0,"w":8},{"t":"- if (age > ttl) return null","fg":1,"bg":null,"a":0,"w":28}]},{"y":15,"wrapped":false,"runs":[{"t":"     42 ","fg":8,"bg":null,"a":0,"w":8},{"t":"+ if (age < 0) return refresh(token)","fg":2,"bg":null,"a":0,"w":36}]},{"y":16,"wrapped":false,"runs":[{"t":"     43 ","fg":8,"bg":null,"a":0,"w":8},{"t":"+ if (age > ttl) return null","fg":2,"bg":null,"a":0,"w":28}]},{"y":18,"wrapped":false,"runs":[{"t":"● ","fg":2,"bg":null,"a":0,"w":2},{"t":"Bash","fg":15,"bg":null,"a":1,"w":4},{"t":"(npm test -- auth)","fg":null,"bg":null,"a":0,"w":18}]},{"y":19,"wrapped":false,"runs":[{"t":"  └  ","fg":null,"bg":null,"a":0,"w":5},{"t":"PASS","fg":2,"bg":null,"a":0,"w":4},{"t":"  test/auth/session.test.ts ","fg":null,"bg":null,"a":0,"w":28},{"t":"(31 s)","fg":8,"bg":null,"a":0,"w":6}]},{"y":20,"wrapped":false,"runs":[{"t":"     ","fg":null,"bg":null,"a":0,"w":5},{"t":"Tests:","fg":15,"bg":null,"a":1,"w":6},{"t":"  ","fg":null,"bg":null,"a":0,"w":2},{"t":"120 passed","fg":2,"bg":null,"a":0,"w":10},{"t":", 120 total","fg":null,"bg":null,"a":0,"w":11}]},{"y":21,"wrapped":false,"runs":[{"t":"     ","fg":null,"bg":null,"a":0,"w":5},{"t":"日","fg":null,"bg":null,"a":0,"w":2},{"t":"本","fg":null,"bg":null,"a":0,"w":2},{"t":"語","fg":null,"bg":null,"a":0,"w":2},{"t":" ","fg":null,"bg":null,"a":0,"w":1},{"t":"🚀","fg":null,"bg":null,"a":0,"w":2},{"t":" ","fg":null,"bg":null,"a":0,"w":1},{"t":"bold","fg":null,"bg":null,"a":1,"w":4},{"t":" ","fg":null,"bg":null,"a":0,"w":1},{"t":"dim","fg":null,"bg":null,"a":2,"w":3},{"t":" ","fg":null,"bg":null,"a":0,"w":1},{"t":"italic","fg":null,"bg":null,"a":4,"w":6},{"t":" ","fg":null,"bg":null,"a":0,"w":1},{"t":"underline","fg":null,"bg":null,"a":8,"w":9},{"t":" ","fg":null,"bg":null,"a":0,"w":1},{"t":"inverse","fg":null,"bg":null,"a":16,"w":7},{"t":" ","fg":null,"bg":null,"a":0,"w":1},{"t":"strike","fg":null,"bg":null,"a":32,"w":6},{"t":" ","fg":null,"bg":null,"a":0,"w":1},{"t":" 208 ","fg":0,"bg":208,"a":0,"w":5},{"t":" 57 ","fg":15,"bg":57,"a":0,"w":4},{"t":" 240 ","fg":15,"bg":240,"a":0,"w":5}]},{"y":23,"wrapped":false,"runs":[{"t":"✻ Thinking… ","fg":3,"bg":null,"a":0,"w":12},{"t":"(38 s, 2.1k tokens, esc to interrupt)","fg":8,"bg":null,"a":0,"w":37}]},{"y":25,"wrapped":false,"runs":[{"t":"╭──────────────────────────────────────────────────────────────────────────────────────────────────────────────────╮","fg":8,"bg":null,"a":0,"w":116}]},{"y":26,"wrapped":false,"runs":[{"t":"│ ","fg":8,"bg":null,"a":0,"w":2},{"t":"> ","fg":6,"bg":null,"a":0,"w":2},{"t":"                                                                                                              ","fg":null,"bg":null,"a":0,"w":110},{"t":" │","fg":8,"bg":null,"a":0,"w":2}]},{"y":27,"wrapped":false,"runs":[{"t":"╰──────────────────────────────────────────────────────────────────────────────────────────────────────────────────╯","fg":8,"bg":null,"a":0,"w":116}]},{"y":28,"wrapped":false,"runs":[{"t":"  worktree fix-login","fg":5,"bg":null,"a":0,"w":20},{"t":"  71 % of context left","fg":8,"bg":null,"a":0,"w":22},{"t":"  asks before tools","fg":6,"bg":null,"a":0,"w":19}]}],"above":240,"oldest":0},"waiting":{"gen":2,"seq":812,"base":null,"full":true,"state":"ready","error":null,"cols":120,"rows":40,"cursor":{"x":4,"y":26},"rows_changed":[],"above":0,"oldest":0},"exited":{"gen":1,"seq":812,"base":null,"full":true,"state":"exited","error":null,"cols":120,"rows":12,"cursor":{"x":4,"y":26},"rows_changed":[{"y":0,"wrapped":false,"runs":[{"t":"> ","fg":6,"bg":null,"a":0,"w":2},{"t":"The login redirect loses the session when the clock changes. Find out why and fix it.","fg":15,"bg":null,"a":1,"w":85}]},{"y":2,"wrapped":false,"runs":[{"t":"● ","fg":2,"bg":null,"a":0,"w":2},{"t":"Plan","fg":15,"bg":null,"a":1,"w":4}]},{"y":3,"wrapped":false,"runs":[{"t":"  └  ","fg":null,"bg":null,"a":0,"w":5},{"t":"✔","fg":2,"bg":null,"a":0,"w":1},{"t":" reproduce with a test that moves the clock","fg":8,"bg":null,"a":0,"w":43}]},{"y":4,"wrapped":false,"runs":[{"t":"     ","fg":null,"bg":null,"a":0,"w":5},{"t":"✔","fg":2,"bg":null,"a":0,"w":1},{"t":" guard the age comparison","fg":8,"bg":null,"a":0,"w":25}]},{"y":5,"wrapped":false,"runs":[{"t":"     ","fg":null,"bg":null,"a":0,"w":5},{"t":"▸","fg":3,"bg":null,"a":0,"w":1},{"t":" run the auth tests","fg":null,"bg":null,"a":0,"w":19}]},{"y":6,"wrapped":false,"runs":[{"t":"     ","fg":null,"bg":null,"a":0,"w":5},{"t":"□ look for the same pattern in cookie.ts","fg":8,"bg":null,"a":0,"w":40}]}],"above":0,"oldest":0},"unavailable":{"gen":2,"seq":812,"base":null,"full":true,"state":"unavailable","error":"the keeper of this session does not answer; the service tries again","cols":0,"rows":0,"cursor":{"x":4,"y":26},"rows_changed":[],"above":0,"oldest":0},"asks":{"gen":2,"seq":812,"base":null,"full":true,"state":"error","error":"the agent asks whether it may trust this folder; trust the project, then start again","cols":120,"rows":40,"cursor":{"x":4,"y":26},"rows_changed":[],"above":0,"oldest":0}},
 "clones": {
  "0123456789abcdef0123456789abcdef": {
   "job_id": "0123456789abcdef0123456789abcdef",
   "name": "handbook",
   "state": "running",
   "shallow": false,
   "phase": "Receiving",
   "percent": 54,
   "bytes": 1572864,
   "started_at": null,
   "ended_at": null,
   "error": null,
   "cancelled": false
  }
 },
 "bootstrap": {
  "version": "1.0.0",
  "build": "0123456789abcdef",
  "root_path": "",
  "projects_root": "/srv/projects",
  "auth": {
   "enabled": false,
   "password_set": false,
   "method": "off",
   "allowed_origins": []
  },
  "features": {
   "reaper": false,
   "config_write": false,
   "config_write_user_scope": false,
   "login_shepherd": false,
   "setup_token": false,
   "hosted": false,
   "pty_supported": true,
   "pty_screen": true,
   "pty_screen_hint": null,
   "clone": true,
   "metrics": true,
   "metrics_show_disk": true,
   "openapi": true,
   "restart": false
  },
  "defaults": {
   "spawn_mode": "same-dir",
   "permission_mode": "default",
   "resume_mode": "standard"
  },
  "permission_labels": {
   "default": {
    "short": "asks first",
    "long": "Ask before tools",
    "effect": "Reads freely; asks before it edits a file or runs a command."
   },
   "plan": {
    "short": "plans only",
    "long": "Plan only",
    "effect": "Looks and plans; changes nothing until you accept the plan."
   },
   "acceptEdits": {
    "short": "edits freely",
    "long": "Accept edits",
    "effect": "Edits files of the project without asking; asks before it runs a command."
   },
   "bypassPermissions": {
    "short": "bypasses permissions",
    "long": "Bypass permissions",
    "effect": "Runs every command and edits every file without asking."
   },
   "inherit": {
    "short": "agent's default permissions",
    "long": "Use the agent's settings",
    "effect": "Passes no mode; the settings files decide."
   }
  },
  "limits": {
   "startup_grace_seconds": 60.0,
   "max_bridges": 10,
   "name_chars": 128,
   "prompt_bytes": 100000,
   "message_bytes": 262144,
   "claude_md_bytes": 65536,
   "elevation_seconds": 600,
   "session_max_age_seconds": 0
  },
  "demo": false,
  "hostname": "buildbox"
 },
 "restore": {
  "candidates": [
   {
    "instance_id": "e62baacc-0a3b-4c5d-8e9f-001122334455",
    "project": "thesis-latex",
    "resume_mode": "standard",
    "ended_at": "2026-11-21T06:07:35Z",
    "restores": "reconnect",
    "blocked": null
   }
  ],
  "job": null
 },
 "stranded": [
  {
   "session_ref": "7d1c0b5a93e2f468",
   "instance_id": "a1c25d38-0a3b-4c5d-8e9f-001122334455",
   "project": "crash-demo",
   "generation": 1,
   "title": "Why does worker 4 need so much memory?",
   "found_at": "2026-11-21T08:03:35Z",
   "state": "stranded",
   "continued_as": null
  }
 ],
 "keepers": [
  {
   "keeper_pid": 4750,
   "project": "api-gateway",
   "bridge_pid": 4700,
   "session_ref": null,
   "state": "ready",
   "instance_id": "2c4e6a80-0a3b-4c5d-8e9f-001122334455",
   "started_at": "2026-11-21T07:27:35Z",
   "orphan": false,
   "damaged": false,
   "version": "1.0.0",
   "outdated": false
  },
  {
   "keeper_pid": 4751,
   "project": "old-prototype",
   "bridge_pid": 4752,
   "session_ref": null,
   "state": "ready",
   "instance_id": null,
   "started_at": "2026-11-20T22:07:35Z",
   "orphan": true,
   "damaged": false,
   "version": "0.9.0",
   "outdated": true
  }
 ],
 "doctor": {
  "ok": false,
  "at": "2026-11-21T08:06:35Z",
  "version": "1.0.0",
  "config_path": "/etc/svc/svc.yml",
  "checks": [
   {
    "name": "claude",
    "status": "fail",
    "detail": "claude was not found on the search path",
    "hint": "Install the agent, or set `claude.binary`."
   },
   {
    "name": "claude-login",
    "status": "warn",
    "detail": "the sign-in ends in 2 days",
    "hint": "Run `claude auth login` as the user of this service."
   },
   {
    "name": "keepers",
    "status": "warn",
    "detail": "1 keeper without a usable session: 4751 (old-prototype, orphaned)",
    "hint": "look at them with `svc keepers`, end an orphan with `svc keepers --kill 4751`"
   },
   {
    "name": "disk",
    "status": "warn",
    "detail": "1.2 GiB are free in /var/lib/svc",
    "hint": null
   },
   {
    "name": "projects_root",
    "status": "ok",
    "detail": "/srv/projects holds 12 projects",
    "hint": null
   },
   {
    "name": "db",
    "status": "ok",
    "detail": "integrity is fine, 15 rows",
    "hint": null
   },
   {
    "name": "git",
    "status": "ok",
    "detail": "git 2.47.3",
    "hint": null
   }
  ]
 },
 "history": {
  "events": [
   {
    "id": 9,
    "at": "2026-11-21T08:07:23Z",
    "project": "docs-site",
    "instance_id": "51b0d9aa-0a3b-4c5d-8e9f-001122334455",
    "kind": "spawned",
    "mode": "standard",
    "session_ref": null,
    "exit_reason": null,
    "cost_usd": null
   },
   {
    "id": 8,
    "at": "2026-11-21T08:03:35Z",
    "project": "crash-demo",
    "instance_id": "a1c25d38-0a3b-4c5d-8e9f-001122334455",
    "kind": "crashed",
    "mode": "standard",
    "session_ref": null,
    "exit_reason": "killed",
    "cost_usd": null
   },
   {
    "id": 7,
    "at": "2026-11-21T07:49:35Z",
    "project": "web-frontend",
    "instance_id": "3a375c2e-0a3b-4c5d-8e9f-001122334455",
    "kind": "ready",
    "mode": "standard",
    "session_ref": null,
    "exit_reason": null,
    "cost_usd": null
   },
   {
    "id": 6,
    "at": "2026-11-21T07:49:31Z",
    "project": "web-frontend",
    "instance_id": "3a375c2e-0a3b-4c5d-8e9f-001122334455",
    "kind": "spawned",
    "mode": "standard",
    "session_ref": null,
    "exit_reason": null,
    "cost_usd": null
   },
   {
    "id": 5,
    "at": "2026-11-21T07:27:35Z",
    "project": "infra-terraform",
    "instance_id": "b3347fe9-0a3b-4c5d-8e9f-001122334455",
    "kind": "ended",
    "mode": "standard",
    "session_ref": null,
    "exit_reason": "binary_not_found",
    "cost_usd": null
   },
   {
    "id": 4,
    "at": "2026-11-21T06:07:35Z",
    "project": "thesis-latex",
    "instance_id": "e62baacc-0a3b-4c5d-8e9f-001122334455",
    "kind": "ended",
    "mode": "standard",
    "session_ref": null,
    "exit_reason": "host_restarted",
    "cost_usd": null
   },
   {
    "id": 3,
    "at": "2026-11-21T03:07:35Z",
    "project": "notes",
    "instance_id": "f73cbbdd-0a3b-4c5d-8e9f-001122334455",
    "kind": "ended",
    "mode": "standard",
    "session_ref": null,
    "exit_reason": "operator_stop",
    "cost_usd": null
   },
   {
    "id": 2,
    "at": "2026-11-20T06:07:35Z",
    "project": "ledger",
    "instance_id": null,
    "kind": "ready",
    "mode": "standard",
    "session_ref": null,
    "exit_reason": null,
    "cost_usd": null
   },
   {
    "id": 1,
    "at": "2026-11-20T06:07:31Z",
    "project": "ledger",
    "instance_id": null,
    "kind": "spawned",
    "mode": "standard",
    "session_ref": null,
    "exit_reason": null,
    "cost_usd": null
   }
  ],
  "next_before": null
 },
 "log": [
  {
   "type": "line",
   "cursor": "2:0",
   "text": "2026-11-21T07:49:31Z [info] bridge registered, polling"
  },
  {
   "type": "line",
   "cursor": "2:1",
   "text": "2026-11-21T07:49:35Z [info] session 1 started in worktree fix-login"
  },
  {
   "type": "mark",
   "kind": "rotated",
   "generation": 2
  },
  {
   "type": "line",
   "cursor": "2:3",
   "text": "2026-11-21T07:52:04Z [debug] 14 tools offered"
  },
  {
   "type": "line",
   "cursor": "2:4",
   "text": "2026-11-21T08:01:17Z [warn] the remote service answers slowly: 4.2 s"
  },
  {
   "type": "line",
   "cursor": "2:5",
   "text": "2026-11-21T08:01:22Z [error] upload of the diff failed: connection reset by peer, trying again in 2 s with the same key so that nothing is written twice"
  },
  {
   "type": "mark",
   "kind": "resumed",
   "generation": 2
  },
  {
   "type": "line",
   "cursor": "2:7",
   "text": "2026-11-21T08:01:24Z [info] upload done"
  },
  {
   "type": "line",
   "cursor": "2:8",
   "text": "2026-11-21T08:07:31Z [info] session 1: turn done in 41 s"
  },
  {
   "type": "mark",
   "kind": "gap",
   "generation": 2
  },
  {
   "type": "line",
   "cursor": "2:10",
   "text": "2026-11-21T08:07:35Z [info] waiting for the next prompt"
  }
 ],
 "preflight": {
  "project": "web-frontend",
  "ok": true,
  "checks": [
   {
    "name": "agent",
    "status": "ok",
    "detail": "claude 2.1.197",
    "hint": null
   },
   {
    "name": "trust",
    "status": "ok",
    "detail": "the folder is trusted",
    "hint": null
   },
   {
    "name": "disk",
    "status": "warn",
    "detail": "1.2 GiB are free in /var/lib/svc",
    "hint": "Free some space."
   }
  ],
  "launch": {
   "standard": {
    "ok": true,
    "code": null
   },
   "background": {
    "ok": true,
    "code": null
   }
  },
  "facts": {
   "inherit": {
    "mode": "default",
    "source": null
   },
   "hooks": [
    "PostToolUse"
   ],
   "mcp_servers": [
    {
     "name": "postgres",
     "approved": true
    }
   ],
   "capacity": {
    "live": 6,
    "max": 10
   }
  }
 },
 "agent_config": {
  "refusal": ".claude/settings.json is left unchanged because it is not valid JSON at line 1, column 2; repair it on the machine",
  "overview": { "project": "web-frontend", "parts": { "claude-md": { "project": 1, "local": 0 }, "settings": { "project": 4, "local": null }, "permissions": { "project": 4, "local": 0 }, "hooks": { "project": 2, "local": 0 }, "mcp": { "project": 2, "local": 0 }, "approvals": { "project": 2 }, "subagents": { "project": 1 }, "skills": { "project": 2, "local": 0 }, "plugins": { "project": 1, "local": 0 }, "marketplaces": { "project": 0, "local": 0 } } },
  "claude-md": { "content": "# web-frontend\n\nRun `npm test` before each commit.\n" },
  "settings": { "settings": { "model": "opus", "includeCoAuthoredBy": false, "env": { "API_TOKEN": "********", "DEBUG": "********" }, "statusLine": { "type": "command", "command": "date" } } },
  "settings/effective": { "project": "web-frontend", "effective": { "model": { "value": "opus", "source": "project" }, "env": { "value": { "API_TOKEN": "********" }, "source": "user" } } },
  "permissions": { "permissions": { "allow": ["Bash(npm run test:*)", "Read"], "deny": ["Read(./.env)"], "defaultMode": "acceptEdits" } },
  "hooks": { "hooks": { "PostToolUse": [{ "matcher": "Edit|Write", "hooks": [{ "type": "command", "command": "npm run format", "timeout": 30 }] }], "Stop": [{ "hooks": [{ "type": "command", "command": "./scripts/notify.sh \"$SESSION\"", "timeout": 60 }] }] } },
  "mcp": { "servers": { "postgres": { "command": "npx", "args": ["-y", "postgres-mcp"], "env": { "PASSWORD": "********" } }, "search": { "command": "search-mcp", "args": ["--index", "docs"] } } },
  "mcp/approvals": { "project": "web-frontend", "enabled": ["postgres"], "disabled": ["old"], "locked": ["search"] },
  "subagents": { "agents": [{ "name": "code-review", "source": "project", "editable": true, "description": "Reads a change and says what is wrong with it." }, { "name": "plan", "source": "built-in", "editable": false, "description": null }] },
  "subagents/code-review": { "content": "---\nname: code-review\ndescription: Reads a change.\n---\n\nBe brief.\n", "editable": true },
  "skills": { "skills": [{ "name": "release", "editable": true, "has_skill_md": true, "files": ["SKILL.md", "scripts/run.sh"], "description": "Makes a release and writes its notes." }, { "name": "shared", "editable": false, "has_skill_md": false, "files": [], "files_error": "it is a link and belongs to a plugin" }] },
  "skills/file": { "content": "---\nname: release\ndescription: Makes a release.\n---\n\nCall scripts/run.sh.\n", "name": "release", "relative": "SKILL.md" },
  "skills/overrides": { "overrides": { "deploy": "name-only", "release-notes": "off" } },
  "plugins": { "plugins": [{ "id": "formatter@market", "enabled": true, "scope": "project", "version": "1.2.0" }] },
  "plugins/enabled": { "enabled": { "formatter@market": true } },
  "marketplaces": { "marketplaces": [{ "name": "market", "source": "directory", "path": "/srv/market" }] },
  "marketplaces/declared": { "marketplaces": {} },
  "copies": { "surface": "hooks", "copies": [{ "id": "00000000001784880000", "at": "2026-07-24T08:00:00Z", "bytes": 812 }] },
  "copies/content": { "hooks": {}, "content": "" }
 }
};
