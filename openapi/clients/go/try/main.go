// Puts a configuration, decides, reads the log: with the client that oapi-codegen makes of the document.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"reflect"
	"time"

	"arbiter/client"
)

const name = "try-go"

func main() {
	ctx, done := context.WithTimeout(context.Background(), time.Minute)
	defer done()
	api, err := client.NewClientWithResponses(os.Getenv("ARBITER_URL"), client.WithRequestEditorFn(authorized))
	check(err)

	anyVersion := "*"
	put, err := api.PutConfigurationWithResponse(
		ctx, name, &client.PutConfigurationParams{IfNoneMatch: &anyVersion}, configuration(),
	)
	check(err)
	expect("status of the write", put.StatusCode(), http.StatusCreated)
	expect("revision", put.JSON201.Revision, int64(1))

	decided, err := api.DecideWithResponse(ctx, nil, question())
	check(err)
	expect("status of the decision", decided.StatusCode(), http.StatusOK)
	decision := decided.JSON200.Decisions[0]
	expect("outcome", decision.Outcome, client.OutcomePreempt)
	expect("victims", len(decision.Victims), 1)
	expect("victim", decision.Victims[0].Workload, "sweep-17")
	expect("freed", decision.Victims[0].Freed["cpu"], 10.0)

	reference := name + "@1"
	page, err := api.ListDecisionsWithResponse(ctx, &client.ListDecisionsParams{Configuration: &reference})
	check(err)
	expect("status of the log", page.StatusCode(), http.StatusOK)
	expect("entries of the log", len(page.JSON200.Items), 1)
	expect("entry", page.JSON200.Items[0].Id, decided.JSON200.Id)
	record, err := api.GetDecisionWithResponse(ctx, decided.JSON200.Id, nil)
	check(err)
	expect("recorded decisions", record.JSON200.Answer.Decisions, decided.JSON200.Decisions)

	unknown, err := api.GetConfigurationWithResponse(ctx, "nobody", nil)
	check(err)
	expect("status of nobody", unknown.ApplicationproblemJSON404.Status, int64(http.StatusNotFound))
	fmt.Printf("%s %s, victim %s\n", decision.Ask, decision.Outcome, decision.Victims[0].Workload)
}

func configuration() client.Configuration {
	engine := client.EngineNameKueue
	cohort := client.KueueQueueRoleCohort
	within, reclaim := client.PreemptionWithinClusterQueueLowerPriority, client.PreemptionReclaimWithinCohortAny
	kueue := &client.KueueQueue{
		Preemption: &client.Preemption{WithinClusterQueue: &within, ReclaimWithinCohort: &reclaim},
	}
	parent := "all"
	whole, thousandths := client.Quota{Guaranteed: number(8)}, client.Quota{Guaranteed: text("8000m")}
	return client.Configuration{Engine: &engine, Queues: &[]client.Queue{
		{Name: parent, Kueue: &client.KueueQueue{Role: &cohort}},
		{Name: "research", Parent: &parent, Quota: &map[string]client.Quota{"cpu": whole}, Kueue: kueue},
		{Name: "serving", Parent: &parent, Quota: &map[string]client.Quota{"cpu": thousandths}, Kueue: kueue},
	}}
}

func question() client.DecisionRequest {
	now := time.Date(2026, 3, 2, 9, 30, 0, 0, time.UTC)
	started := now.Add(-2 * time.Hour)
	priority, count := int64(100), int64(2)
	flavors := map[string]string{"cpu": "default"}
	var stored client.ConfigurationOrName
	check(stored.FromConfigurationOrName0(name))
	return client.DecisionRequest{
		Now:           &now,
		Configuration: &stored,
		State: client.StateOrReference{Workloads: &[]client.Workload{{
			Id: "sweep-17", Queue: "research", StartedAt: &started,
			Tasks: &[]client.Task{{Name: "trial", Requests: &client.Resources{"cpu": *number(10)}, Flavors: &flavors}},
		}}},
		Asks: &[]client.Ask{{
			Id: "chat-api", Queue: "serving", Priority: &priority,
			Tasks: []client.Task{{
				Name: "replica", Count: &count, Requests: &client.Resources{"cpu": *text("3500m")}, Flavors: &flavors,
			}},
		}},
	}
}

func number(value float64) *client.Quantity {
	var quantity client.Quantity
	check(quantity.FromQuantity0(value))
	return &quantity
}

func text(value string) *client.Quantity {
	var quantity client.Quantity
	check(quantity.FromQuantity1(value))
	return &quantity
}

func authorized(_ context.Context, request *http.Request) error {
	request.Header.Set("Authorization", "Bearer "+os.Getenv("ARBITER_TOKEN"))
	return nil
}

func expect(what string, found, wanted any) {
	if !reflect.DeepEqual(found, wanted) {
		log.Fatalf("%s: %v, not %v", what, found, wanted)
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
