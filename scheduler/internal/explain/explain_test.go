package explain

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"kctl/proto/core"
	"kctl/scheduler/internal/cache"
	"kctl/scheduler/internal/fixture"
	"kctl/scheduler/internal/nominator"
	"kctl/scheduler/internal/profile"
	"kctl/scheduler/internal/queue"
)

// pods is an API server that has pods.
type pods map[string]*core.Pod

func (p pods) Pod(_ context.Context, _, name string) (*core.Pod, error) {
	if pod := p[name]; pod != nil {
		return pod, nil
	}
	return nil, errors.New("not found")
}

func explainer(t *testing.T, stored pods, nodes ...*core.Node) *Explainer {
	t.Helper()
	configuration, err := profile.Default()
	if err != nil {
		t.Fatal(err)
	}
	profiles, err := configuration.Build(profile.Services{})
	if err != nil {
		t.Fatal(err)
	}
	e := &Explainer{
		Profiles:  profiles,
		Cache:     cache.New(clock.RealClock{}, cache.DefaultExpiry),
		Nominator: nominator.New(),
		Pods:      stored,
		Queue:     queue.New(queue.Options{Profiles: profiles, Clock: clock.RealClock{}, Backoff: queue.DefaultBackoff, FlushAfter: queue.DefaultFlushAfter}),
	}
	for _, node := range nodes {
		e.Cache.SetNode(node)
	}
	for _, pod := range stored {
		if pod.Spec.NodeName != "" {
			e.Cache.SetPod(pod)
		} else {
			e.Queue.Add(t.Context(), pod)
		}
	}
	return e
}

// lines writes an explanation in a form to compare.
func lines(x *Explanation) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s queue=%q node=%q nominated=%q %q\n", x.Pod, x.Queue, x.Node, x.Nominated, x.Message)
	for _, n := range x.Nodes {
		fmt.Fprintf(&b, "%s %d", n.Name, n.Total)
		for _, r := range n.Refusals {
			fmt.Fprintf(&b, " %s:%s:%s", r.Plugin, r.Code, strings.Join(r.Reasons, ";"))
		}
		for _, taint := range n.Taints {
			fmt.Fprintf(&b, " taint=%s", taint)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func TestExplain(t *testing.T) {
	nodes := []*core.Node{
		fixture.Node("n1", fixture.Allocatable("cpu", "1")),
		fixture.Node("n2", fixture.Taint("k", "v", corev1.TaintEffectNoSchedule), fixture.Taint("soft", "", corev1.TaintEffectPreferNoSchedule),
			fixture.Allocatable("cpu", "2")),
		fixture.Node("n3"), fixture.Node("n4"),
	}
	stored := pods{}
	for _, pod := range []*core.Pod{
		fixture.Pod("fits", fixture.Requests("cpu", "3")),
		fixture.Pod("large", fixture.Requests("cpu", "10")),
		fixture.Pod("bound", fixture.Requests("cpu", "4"), fixture.On("n3")),
		fixture.Pod("claims", func(p *core.Pod) { p.Spec.ResourceClaims = []corev1.PodResourceClaim{{}} }),
		fixture.Pod("named", func(p *core.Pod) {
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn,
					Values: []string{"n3"}}}}},
			}}}
		}),
		fixture.Pod("foreign", func(p *core.Pod) { p.Spec.SchedulerName = "other" }),
	} {
		stored[pod.Name] = pod
	}
	e := explainer(t, stored, nodes...)
	e.Nominator.Set(fixture.Pod("important", fixture.Priority(9), fixture.Requests("cpu", "2")), "n4")
	e.Nominator.Set(stored["large"], "n1")
	for name, want := range map[string]string{
		// n3 is full, and half of n4 is reserved for a nominated pod.
		"fits": `default/fits queue="active" node="" nominated="" "0/4 nodes are available: 1 node(s) had untolerated taint(s), 3 Insufficient cpu."
n1 0 NodeResourcesFit:UnschedulableAndUnresolvable:Insufficient cpu
n2 0 TaintToleration:UnschedulableAndUnresolvable:node(s) had untolerated taint(s) NodeResourcesFit:UnschedulableAndUnresolvable:Insufficient cpu taint=k=v:NoSchedule
n3 0 NodeResourcesFit:Unschedulable:Insufficient cpu
n4 0 NodeResourcesFit:Unschedulable:Insufficient cpu
`,
		"claims": `default/claims queue="active" node="" nominated="" "0/4 nodes are available: spec.resourceClaims is not supported by this scheduler (it has no DynamicResources plugin)."
n1 0 KctlUnsupported:UnschedulableAndUnresolvable:spec.resourceClaims is not supported by this scheduler (it has no DynamicResources plugin)
n2 0 KctlUnsupported:UnschedulableAndUnresolvable:spec.resourceClaims is not supported by this scheduler (it has no DynamicResources plugin) taint=k=v:NoSchedule
n3 0 KctlUnsupported:UnschedulableAndUnresolvable:spec.resourceClaims is not supported by this scheduler (it has no DynamicResources plugin)
n4 0 KctlUnsupported:UnschedulableAndUnresolvable:spec.resourceClaims is not supported by this scheduler (it has no DynamicResources plugin)
`,
	} {
		got, err := e.Explain(t.Context(), "default", name)
		if err != nil {
			t.Fatal(err)
		}
		if text := lines(got); text != want {
			t.Errorf("%s:\n%s\nwant\n%s", name, text, want)
		}
	}

	bound, err := e.Explain(t.Context(), "default", "bound")
	if err != nil || bound.Node != "n3" || bound.Nodes[0].Name != "n3" || len(bound.Nodes[0].Scores) == 0 || bound.Nodes[0].Total == 0 {
		t.Errorf("its own node does not take a bound pod: %v %v", bound, err)
	}
	named, err := e.Explain(t.Context(), "default", "named")
	if err != nil || named.Nodes[0].Name != "n3" || len(named.Nodes[0].Refusals) != 0 || named.Nodes[1].Refusals[0].Plugin != "NodeAffinity" {
		t.Errorf("%v %v", named, err)
	}
	if large, err := e.Explain(t.Context(), "default", "large"); err != nil || large.Nominated != "n1" {
		t.Errorf("%v %v", large, err)
	}
	var foreign *ForeignError
	if _, err := e.Explain(t.Context(), "default", "foreign"); !errors.As(err, &foreign) {
		t.Errorf("another scheduler's pod: %v", err)
	}
	if _, err := e.Explain(t.Context(), "default", "gone"); err == nil {
		t.Error("a pod that is not there is explained")
	}
}

// The scores are those by which a pod is placed, the best node first.
func TestExplainRanks(t *testing.T) {
	stored := pods{"p": fixture.Pod("p", fixture.Requests("cpu", "1")), "q": fixture.Pod("q", fixture.Requests("cpu", "2"), fixture.On("n1"))}
	got, err := explainer(t, stored, fixture.Node("n1"), fixture.Node("n2")).Explain(t.Context(), "default", "p")
	if err != nil {
		t.Fatal(err)
	}
	if got.Nodes[0].Name != "n2" || got.Nodes[0].Total <= got.Nodes[1].Total || got.Message != "" {
		t.Errorf("%+v", got)
	}
	var total int64
	for _, s := range got.Nodes[0].Scores {
		total += s.Score * s.Weight
	}
	if total != got.Nodes[0].Total {
		t.Errorf("scores make %d, the total is %d", total, got.Nodes[0].Total)
	}
}
