//! The whole program from outside: real `svc`, real processes, simulated agent.
//!
//! Every test has a machine of its own (`harness::World`), waits for events, and leaves nothing.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "a test program: what it cannot do fails the test that asked"
)]

mod accounts;
mod activity;
mod adoption;
mod agent_sign_in;
mod approval_chain;
mod approval_hook;
mod approval_settings;
mod approval_socket;
mod audit;
mod backups;
mod backups_hostile;
mod changes;
mod clients;
mod clones;
mod commands;
mod config_copies;
mod config_plugins;
mod config_skills;
mod config_subagents;
mod config_write;
mod configuration;
mod conversations;
mod crash_consistency;
mod crash_points;
mod crash_sessions;
mod demo;
mod deps;
mod devices;
mod direct_sessions;
mod doctor;
mod documentation;
mod edge;
mod encrypted;
mod ends;
mod environment;
mod environments;
mod every_status;
mod few_descriptors;
mod figures;
mod first_run;
mod foreign_git;
mod forged_records;
mod generated;
mod guard;
mod hanging;
// Shared with the long runs, `tests/examples/endurance`.
#[expect(dead_code, unused_imports, reason = "the long runs use the rest")]
mod harness;
mod hostile_clock;
mod hostile_crowd;
mod hostile_database;
mod hostile_random;
mod hostile_requests;
mod hostile_scarcity;
mod identity;
mod in_place;
mod instructions;
mod interface;
mod jobs;
mod jobs_faults;
mod keepers;
mod large_files;
mod launch_plans;
mod launching;
mod leaks;
mod legacy;
mod link;
mod live_settings;
mod log_files;
mod lost_keepers;
mod main_job;
mod mcp;
mod mcp_client;
mod monitoring;
mod notifications;
mod odd_agents;
mod odd_callers;
mod open_sockets;
mod openapi;
mod outbound;
mod outside;
mod pipes;
mod plan_limits;
mod plan_limits_crowd;
mod power_cut;
mod probe;
mod probe_faults;
mod proxies;
mod push;
mod questions_crowd;
mod readiness;
mod real_agent;
mod real_agent_config;
mod recap;
mod reports;
mod reserve;
mod restart_crowd;
mod restart_streams;
mod restarts;
mod restoring;
mod same_session;
mod samples;
mod scanner;
mod secrets;
mod server_log;
mod sessions_in_terminals;
mod settings;
mod settings_crowd;
mod shell;
mod signals;
mod single_launch;
mod slow_crowd;
mod stranded;
mod support;
mod systemd;
mod twin;
mod two_servers;
mod units;
mod upgrade;
mod wake_ups;
mod webhook_outbox;
mod webhooks;
mod wrong_ends;
