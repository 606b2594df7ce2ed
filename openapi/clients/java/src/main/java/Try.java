import arbiter.ApiClient;
import arbiter.ApiException;
import arbiter.api.ConfigurationsApi;
import arbiter.api.DecisionLogApi;
import arbiter.api.DecisionsApi;
import arbiter.model.Ask;
import arbiter.model.ConfigurationDocument;
import arbiter.model.ConfigurationOrName;
import arbiter.model.Decision;
import arbiter.model.DecisionAnswer;
import arbiter.model.DecisionPage;
import arbiter.model.DecisionRequest;
import arbiter.model.EngineName;
import arbiter.model.KueueQueue;
import arbiter.model.Outcome;
import arbiter.model.Preemption;
import arbiter.model.Quantity;
import arbiter.model.Queue;
import arbiter.model.Quota;
import arbiter.model.StateOrReference;
import arbiter.model.Task;
import arbiter.model.Workload;
import java.time.OffsetDateTime;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/** Puts a configuration, decides, reads the log: with the client that openapi-generator makes of the document. */
public final class Try {
    private static final String NAME = "try-java";

    public static void main(String[] arguments) throws ApiException {
        ApiClient client = new ApiClient();
        client.updateBaseUri(System.getenv("ARBITER_URL"));
        client.setRequestInterceptor(
            request -> request.header("Authorization", "Bearer " + System.getenv("ARBITER_TOKEN")));
        ConfigurationsApi configurations = new ConfigurationsApi(client);
        DecisionLogApi log = new DecisionLogApi(client);

        var written = configurations.putConfiguration(
            ConfigurationsApi.APIPutConfigurationRequest.newBuilder()
                .name(NAME).ifNoneMatch("*").configurationDocument(configuration()).build());
        expect("revision", written.getRevision(), 1L);

        DecisionAnswer answer = new DecisionsApi(client).decide(
            DecisionsApi.APIDecideRequest.newBuilder().decisionRequest(question()).build());
        Decision decision = answer.getDecisions().get(0);
        expect("outcome", decision.getOutcome(), Outcome.PREEMPT);
        expect("victims", decision.getVictims().size(), 1);
        expect("victim", decision.getVictims().get(0).getWorkload(), "sweep-17");
        expect("freed", decision.getVictims().get(0).getFreed().get("cpu"), 10.0);

        DecisionPage page = log.listDecisions(
            DecisionLogApi.APIListDecisionsRequest.newBuilder().configuration(NAME + "@1").build());
        expect("entries of the log", page.getItems().size(), 1);
        expect("entry", page.getItems().get(0).getId(), answer.getId());
        var record = log.getDecision(DecisionLogApi.APIGetDecisionRequest.newBuilder().id(answer.getId()).build());
        expect("recorded decisions", record.getAnswer().getDecisions(), answer.getDecisions());

        try {
            configurations.getConfiguration(
                ConfigurationsApi.APIGetConfigurationRequest.newBuilder().name("nobody").build());
            throw new AssertionError("nobody is there");
        } catch (ApiException refused) {
            expect("status of nobody", refused.getCode(), 404);
        }
        System.out.printf(
            "%s %s, victim %s%n",
            decision.getAsk(), decision.getOutcome(), decision.getVictims().get(0).getWorkload());
    }

    private static ConfigurationDocument configuration() {
        KueueQueue kueue = new KueueQueue().preemption(
            new Preemption()
                .withinClusterQueue(Preemption.WithinClusterQueueEnum.LOWER_PRIORITY)
                .reclaimWithinCohort(Preemption.ReclaimWithinCohortEnum.ANY));
        return new ConfigurationDocument().engine(EngineName.KUEUE).queues(List.of(
            new Queue().name("all").kueue(new KueueQueue().role(KueueQueue.RoleEnum.COHORT)),
            new Queue().name("research").parent("all").kueue(kueue)
                .quota(Map.of("cpu", new Quota().guaranteed(new Quantity(8.0)))),
            new Queue().name("serving").parent("all").kueue(kueue)
                .quota(Map.of("cpu", new Quota().guaranteed(new Quantity("8000m"))))));
    }

    private static DecisionRequest question() {
        OffsetDateTime now = OffsetDateTime.parse("2026-03-02T09:30:00Z");
        Map<String, String> flavors = Map.of("cpu", "default");
        Task trial = new Task().name("trial").requests(Map.of("cpu", new Quantity(10.0))).flavors(flavors);
        Task replica =
            new Task().name("replica").count(2L).requests(Map.of("cpu", new Quantity("3500m"))).flavors(flavors);
        return new DecisionRequest()
            .now(now)
            .configuration(new ConfigurationOrName(NAME))
            .state(new StateOrReference().workloads(List.of(
                new Workload().id("sweep-17").queue("research").startedAt(now.minusHours(2)).tasks(List.of(trial)))))
            .asks(List.of(new Ask().id("chat-api").queue("serving").priority(100L).tasks(List.of(replica))));
    }

    private static void expect(String what, Object found, Object wanted) {
        if (!Objects.equals(found, wanted)) {
            throw new AssertionError(what + ": " + found + ", not " + wanted);
        }
    }
}
