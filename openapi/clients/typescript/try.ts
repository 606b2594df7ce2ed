// Puts a configuration, decides, reads the log: with the types that openapi-typescript makes of the document.
import createClient from "openapi-fetch";
import assert from "node:assert/strict";
import type { components, paths } from "./schema.js";

const { ARBITER_URL: baseUrl = "http://127.0.0.1:8080", ARBITER_TOKEN: token = "" } = process.env;
const client = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${token}` } });
const name = "try-typescript";

const preemption = {
  preemption: { within_cluster_queue: "LowerPriority", reclaim_within_cohort: "Any" },
} satisfies components["schemas"]["KueueQueue"];
const configuration: components["schemas"]["Configuration"] = {
  engine: "kueue",
  queues: [
    { name: "all", kueue: { role: "cohort" } },
    { name: "research", parent: "all", quota: { cpu: { guaranteed: 8 } }, kueue: preemption },
    { name: "serving", parent: "all", quota: { cpu: { guaranteed: "8000m" } }, kueue: preemption },
  ],
};

const put = await client.PUT("/v1/configurations/{name}", {
  params: { path: { name }, header: { "if-none-match": "*" } },
  body: configuration,
});
assert.equal(put.response.status, 201, put.error?.detail);
assert.equal(put.data?.revision, 1);

const decided = await client.POST("/v1/decisions", {
  body: {
    now: "2026-03-02T09:30:00Z",
    configuration: name,
    state: {
      workloads: [
        {
          id: "sweep-17",
          queue: "research",
          started_at: "2026-03-02T07:10:05Z",
          tasks: [{ name: "trial", requests: { cpu: 10 }, flavors: { cpu: "default" } }],
        },
      ],
    },
    asks: [
      {
        id: "chat-api",
        queue: "serving",
        priority: 100,
        tasks: [{ name: "replica", count: 2, requests: { cpu: "3500m" }, flavors: { cpu: "default" } }],
      },
    ],
  },
});
assert.ok(decided.data, decided.error?.detail);
const [decision] = decided.data.decisions;
assert.equal(decision?.outcome, "preempt");
assert.deepEqual(decision.victims.map((victim) => victim.workload), ["sweep-17"]);
assert.equal(decision.victims[0]?.freed["cpu"], 10);

const log = await client.GET("/v1/decisions", { params: { query: { configuration: `${name}@1` } } });
assert.deepEqual(log.data?.items.map((item) => item.id), [decided.data.id], log.error?.detail);
const record = await client.GET("/v1/decisions/{id}", { params: { path: { id: decided.data.id } } });
assert.deepEqual(record.data?.answer.decisions, decided.data.decisions, record.error?.detail);

const unknown = await client.GET("/v1/configurations/{name}", { params: { path: { name: "nobody" } } });
assert.equal(unknown.error?.status, 404);
console.log(`${decision.ask} ${decision.outcome}, victim ${decision.victims[0]?.workload}`);
