package profile

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kctl/scheduler/framework"
	"kctl/scheduler/internal/fixture"
	"kctl/scheduler/internal/plugins/plugintest"
)

func fromPolicy(t *testing.T, fields string) (*Configuration, *framework.Profile) {
	t.Helper()
	c, err := parsePolicy([]byte(`{"kind":"Policy","apiVersion":"v1"` + fields + `}`))
	if err != nil {
		t.Fatal(err)
	}
	profiles, err := c.Build(Services{})
	if err != nil {
		t.Fatal(err)
	}
	return c, profiles["default-scheduler"]
}

func scoresOf(p *framework.Profile) map[string]int64 {
	weights := map[string]int64{}
	for _, s := range p.Score {
		weights[s.Name()] = s.Weight
	}
	return weights
}

// The policy in Kubernetes' examples, and what it leaves out.
func TestPolicy(t *testing.T) {
	c, p := fromPolicy(t, `,
"predicates": [
  {"name": "PodFitsHostPorts"}, {"name": "PodFitsResources"}, {"name": "NoDiskConflict"}, {"name": "HostName"},
  {"name": "Racked", "argument": {"labelsPresence": {"labels": ["rack"], "presence": true}}}],
"priorities": [
  {"name": "LeastRequestedPriority", "weight": 1}, {"name": "BalancedResourceAllocation", "weight": 4},
  {"name": "ServiceSpreadingPriority", "weight": 2}, {"name": "EvenPodsSpreadPriority", "weight": 3}, {"name": "EqualPriority", "weight": 1}],
"extenders": [{"urlPrefix": "https://x", "enableHttps": true, "httpTimeout": 2000000000, "filterVerb": "f"}],
"alwaysCheckAllPredicates": true, "hardPodAffinitySymmetricWeight": 10`)
	if got, want := names(p.Filter), []string{"NodeName", "NodeUnschedulable", "TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit",
		"VolumeRestrictions", "NodeDeclaredFeatures"}; !slices.Equal(got, want) {
		t.Errorf("filters %v, want %v", got, want)
	}
	if got := scoresOf(p); len(got) != 3 || got["NodeResourcesFit"] != 1 || got["NodeResourcesBalancedAllocation"] != 4 || got["PodTopologySpread"] != 3 {
		t.Errorf("scores %v", got)
	}
	if !slices.Contains(names(p.PreFilter), "KctlUnsupported") || p.QueueSort.Name() != "PrioritySort" || len(p.Bind) != 1 || len(p.PostFilter) != 1 {
		t.Error("a default that policies can't change is missing")
	}
	affinity := p.Filter[3]
	for rack, fits := range map[string]bool{"rack": true, "other": false} {
		status := plugintest.Filter(t.Context(), affinity, fixture.Pod("p"), fixture.NodeInfo(fixture.Node("n", fixture.Label(rack, "1"))))
		if status.IsSuccess() != fits {
			t.Errorf("a node with the label %s: %v", rack, status.Reasons())
		}
	}
	if e := c.Extenders; len(e) != 1 || !e[0].EnableHTTPS || e[0].HTTPTimeout.Duration != 2*time.Second || e[0].FilterVerb != "f" {
		t.Errorf("extenders %+v", e)
	}
	notes := strings.Join(c.Notes, "\n")
	for _, want := range []string{
		"PodFitsHostPorts became the filter of plugin NodePorts", "NoDiskConflict became the filter of plugin VolumeRestrictions", "EqualPriority is left out",
		"alwaysCheckAllPredicates has no effect", "hardPodAffinitySymmetricWeight has no effect", "Racked became addedAffinity",
	} {
		if !strings.Contains(notes, want) {
			t.Errorf("no note says %q:\n%s", want, notes)
		}
	}
}

func TestPolicyDefaultsAndNothing(t *testing.T) {
	_, p := fromPolicy(t, "")
	if len(p.Filter) != 13 || len(p.Score) != 7 || scoresOf(p)["TaintToleration"] != 1 || scoresOf(p)["PodTopologySpread"] != 2 {
		t.Errorf("filters %v, scores %v", names(p.Filter), scoresOf(p))
	}
	_, p = fromPolicy(t, `,"predicates":[],"priorities":[]`)
	if got := names(p.Filter); !slices.Equal(got, []string{"NodeUnschedulable", "TaintToleration", "NodeDeclaredFeatures"}) || len(p.Score) != 0 {
		t.Errorf("filters %v, scores %v", got, scoresOf(p))
	}
}

func TestPolicyStrategy(t *testing.T) {
	_, p := fromPolicy(t, `,"priorities":[{"name":"Packed","weight":5,"argument":{"requestedToCapacityRatioArguments":
		{"shape":[{"utilization":0,"score":0},{"utilization":100,"score":10}],"resources":[{"name":"cpu","weight":1}]}}}]`)
	scores, status := plugintest.Scores(t.Context(), p.Score[0].Score, fixture.Pod("p", fixture.Requests("cpu", "3")), fixture.NodeInfo(fixture.Node("n")))
	if !status.IsSuccess() || scores[0] != 75 || p.Score[0].Weight != 5 {
		t.Errorf("%v %v", scores, status.Reasons())
	}
}

func TestBadPolicy(t *testing.T) {
	const header = "kind: Policy\napiVersion: v1\n"
	for want, file := range map[string]string{
		"line 2: apiVersion":               "kind: Policy\napiVersion: v2\n",
		`line 3: unknown field "bogus"`:    header + "bogus: 1\n",
		`line 4: predicate "Nope"`:         header + "predicates:\n- name: Nope\n",
		"serviceAffinity is not supported": header + "predicates: [{name: A, argument: {serviceAffinity: {labels: [zone]}}}]\n",
		`priority "ServiceSpread" is not`:  header + "priorities: [{name: ServiceSpread, weight: 1, argument: {serviceAntiAffinity: {label: zone}}}]\n",
		"line 5: weight: 0":                header + "priorities:\n- name: NodeAffinityPriority\n  weight: 0\n",
		"one strategy":                     header + "priorities: [{name: LeastRequestedPriority, weight: 1}, {name: MostRequestedPriority, weight: 1}]\n",
	} {
		if _, err := parsePolicy([]byte(file)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
	path := filepath.Join(t.TempDir(), "policy.json")
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadPolicy(path); err == nil || !strings.Contains(err.Error(), "policy.json") {
		t.Errorf("got %v", err)
	}
}
