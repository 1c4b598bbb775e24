package profile

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"kctl/scheduler/framework"
	"kctl/scheduler/internal/fixture"
	"kctl/scheduler/internal/plugins/plugintest"
)

func names[P framework.Plugin](plugins []P) []string {
	out := []string{}
	for _, p := range plugins {
		out = append(out, p.Name())
	}
	return out
}

func TestDefaultProfile(t *testing.T) {
	c, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	profiles, err := c.Build(Services{})
	if err != nil {
		t.Fatal(err)
	}
	p := profiles["default-scheduler"]
	if p == nil || len(profiles) != 1 {
		t.Fatalf("profiles: %v", profiles)
	}
	if got, want := names(p.Filter), []string{"NodeName", "NodeUnschedulable", "TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit",
		"VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone", "PodTopologySpread", "InterPodAffinity",
		"NodeDeclaredFeatures"}; !slices.Equal(got, want) {
		t.Errorf("filters %v, want %v", got, want)
	}
	weights := map[string]int64{}
	for _, s := range p.Score {
		weights[s.Name()] = s.Weight
	}
	for name, want := range map[string]int64{"TaintToleration": 3, "NodeAffinity": 2, "NodeResourcesFit": 1, "PodTopologySpread": 2, "InterPodAffinity": 2,
		"NodeResourcesBalancedAllocation": 1, "ImageLocality": 1} {
		if weights[name] != want {
			t.Errorf("weight of %s is %d, want %d", name, weights[name], want)
		}
	}
	if p.QueueSort.Name() != "PrioritySort" || names(p.Bind)[0] != "DefaultBinder" || names(p.PreEnqueue)[0] != "SchedulingGates" {
		t.Error("queueSort, bind or preEnqueue is not the default")
	}
}

const header = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"

func TestConfigured(t *testing.T) {
	c, err := parse([]byte(header + `
parallelism: 16
percentageOfNodesToScore: 30
podInitialBackoffSeconds: 2
leaderElection: {leaderElect: false}
extenders: [{urlPrefix: "http://x", filterVerb: filter, managedResources: [{name: example.com/gpu, ignoredByScheduler: true}]}]
profiles:
- schedulerName: one
  plugins:
    score:
      disabled: [{name: NodeResourcesBalancedAllocation}, {name: ImageLocality}]
      enabled: [{name: NodeAffinity, weight: 9}]
  pluginConfig:
  - name: NodeResourcesFit
    args:
      apiVersion: kubescheduler.config.k8s.io/v1
      kind: NodeResourcesFitArgs
      scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 2}]}
- schedulerName: two
  percentageOfNodesToScore: 70
  plugins:
    multiPoint: {disabled: [{name: NodePorts}]}
    preScore: {disabled: [{name: "*"}]}
    score: {disabled: [{name: "*"}]}
`))
	if err != nil {
		t.Fatal(err)
	}
	profiles, err := c.Build(Services{})
	if err != nil {
		t.Fatal(err)
	}
	one, two := profiles["one"], profiles["two"]
	if got := len(one.Score); got != 6 {
		t.Errorf("one has %d scores, want 6", got)
	}
	for _, s := range one.Score {
		if s.Name() == "NodeAffinity" && s.Weight != 9 {
			t.Errorf("NodeAffinity weighs %d, want 9", s.Weight)
		}
	}
	if one.PercentageOfNodesToScore != 30 || two.PercentageOfNodesToScore != 70 {
		t.Error("percentageOfNodesToScore is not the profile's, else the file's")
	}
	if len(two.Score) != 0 || slices.Contains(names(two.Filter), "NodePorts") {
		t.Errorf("two has %d scores and filters %v", len(two.Score), names(two.Filter))
	}
	if !slices.Contains(names(two.PreFilter), "KctlUnsupported") {
		t.Error("KctlUnsupported is off")
	}
	gpu := fixture.Pod("p", fixture.Requests("example.com/gpu", "1"))
	fit := one.Filter[slices.IndexFunc(one.Filter, func(f framework.Filter) bool { return f.Name() == "NodeResourcesFit" })]
	if status := plugintest.Filter(t.Context(), fit, gpu, fixture.NodeInfo(fixture.Node("n"))); !status.IsSuccess() || len(c.Extenders) != 1 {
		t.Errorf("a resource of the extender is counted twice: %v", status.Reasons())
	}
	if *c.LeaderElection.LeaderElect || c.InitialBackoff.Seconds() != 2 {
		t.Error("leaderElect or podInitialBackoffSeconds is not read")
	}
}

// spread is a profile with default constraints, ratio one with a shape.
func spread(constraints string) string {
	return "profiles: [{pluginConfig: [{name: PodTopologySpread, args: {defaultingType: List, defaultConstraints: [" + constraints + "]}}]}]\n"
}

func ratio(points string) string {
	return "profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: RequestedToCapacityRatio, requestedToCapacityRatio: {shape: [" +
		points + "]}}}}]}]\n"
}

func TestBadConfigurationIsRefusedByName(t *testing.T) {
	for want, file := range map[string]string{
		"kind":                          "apiVersion: kubescheduler.config.k8s.io/v1\nkind: Other\n",
		"v1beta3":                       "apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\n",
		`unknown field "bogus"`:         header + "bogus: 1\n",
		"yaml":                          header + "profiles: [\n",
		"parallelism: Invalid value: 0": header + "parallelism: 0\n",
		"Invalid value: 101: not in valid range [0-100]":                  header + "percentageOfNodesToScore: 101\n",
		"a second YAML document":                                          header + "---\n" + header,
		"podInitialBackoffSeconds: Invalid value: 9":                      header + "podInitialBackoffSeconds: 9223372036854775807\n",
		"podMaxBackoffSeconds: Invalid value: 1":                          header + "podMaxBackoffSeconds: 18446744074\n", // 0.3 s, in nanoseconds of 64 bits
		"got JSON type array":                                             "[]",
		"must be greater than or equal to PodInitialBackoffSeconds":       header + "podInitialBackoffSeconds: 5\npodMaxBackoffSeconds: 1\n",
		"clientConnection.burst: Invalid value: -1: must be non-negative": header + "clientConnection: {burst: -1}\n",
		`"endpoints": resourceLock value must be "leases"`:                header + "leaderElection: {resourceLock: endpoints}\n",
		`profiles[1].schedulerName: Duplicate value: "a"`:                 header + "profiles: [{schedulerName: a}, {schedulerName: a}]\n",
		"profiles[1].schedulerName: Required value":                       header + "profiles: [{schedulerName: a}, {}]\n",
		`unknown plugin "Nope"`:                                           header + "profiles: [{plugins: {filter: {enabled: [{name: Nope}]}}}]\n",
		"plugin GangScheduling is":                                        header + "profiles: [{plugins: {multiPoint: {enabled: [{name: GangScheduling}]}}}]\n",
		"shape[0].score: Invalid value: 11": header +
			"profiles: [{pluginConfig: [{name: VolumeBinding, args: {shape: [{utilization: 0, score: 11}]}}]}]\n",
		"hardPodAffinityWeight: Invalid value: 101": header +
			"profiles: [{pluginConfig: [{name: InterPodAffinity, args: {hardPodAffinityWeight: 101}}]}]\n",
		"when .defaultConstraints are not empty": header +
			"profiles: [{pluginConfig: [{name: PodTopologySpread, args: {defaultConstraints: [{topologyKey: zone}]}}]}]\n",
		`defaultingType: Unsupported value: "Other"`:          header + "profiles: [{pluginConfig: [{name: PodTopologySpread, args: {defaultingType: Other}}]}]\n",
		"maxSkew: Invalid value: 0":                           header + spread("{topologyKey: a, whenUnsatisfiable: ScheduleAnyway}"),
		"topologyKey: Required value: can not be empty":       header + spread("{maxSkew: 1, whenUnsatisfiable: ScheduleAnyway}"),
		"whenUnsatisfiable: Required value: can not be empty": header + spread("{maxSkew: 1, topologyKey: a}"),
		`whenUnsatisfiable: Unsupported value: "Never"`:       header + spread("{maxSkew: 1, topologyKey: a, whenUnsatisfiable: Never}"),
		"labelSelector: Forbidden: constraint must not":       header + spread("{maxSkew: 1, topologyKey: a, whenUnsatisfiable: ScheduleAnyway, labelSelector: {}}"),
		`Duplicate value: "{a, DoNotSchedule}"`: header + spread("{maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule}, {maxSkew: 2, "+
			"topologyKey: a, whenUnsatisfiable: DoNotSchedule}"),
		"plugins.permit":         header + "profiles: [{plugins: {permit: {enabled: [{name: NodeName}]}}}]\n",
		"plugins.placementScore": header + "profiles: [{plugins: {placementScore: {enabled: [{name: NodeName}]}}}]\n",
		"does not implement":     header + "profiles: [{plugins: {score: {enabled: [{name: NodeName}]}}}]\n",
		"can't be disabled":      header + "profiles: [{plugins: {multiPoint: {disabled: [{name: KctlUnsupported}]}}}]\n",
		"no bind plugin":         header + "profiles: [{plugins: {bind: {disabled: [{name: '*'}]}}}]\n",
		"no queueSort plugin":    header + "profiles: [{plugins: {queueSort: {disabled: [{name: '*'}]}}}]\n",
		"profiles[1].plugins.queueSort: Invalid value": header +
			"profiles: [{schedulerName: a}, {schedulerName: b, plugins: {queueSort: {enabled: [{name: PrioritySort}], disabled: [{name: '*'}]}}}]\n",
		"weight -1": header + "profiles: [{plugins: {score: {enabled: [{name: NodeAffinity, weight: -1}]}}}]\n",
		"requestedToCapacityRatio: Required value: must be specified when type is": header +
			"profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: RequestedToCapacityRatio}}}]}]\n",
		"requestedToCapacityRatio: Forbidden: must be nil when type is not": header +
			"profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated, requestedToCapacityRatio: {shape: " +
			"[{utilization: 1, score: 1}]}}}}]}]\n",
		"shape: Required value: at least one point must be specified": header + ratio(""),
		`resources[1].name: Duplicate value: "cpu"`: header +
			"profiles: [{pluginConfig: [{name: NodeResourcesBalancedAllocation, args: {resources: [{name: cpu}, {name: cpu}]}}]}]\n",
		"utilization: Invalid value: 101: not in valid range [0, 100]":              header + ratio("{utilization: 101, score: 1}"),
		"score: Invalid value: 11: not in valid range [0, 10]":                      header + ratio("{utilization: 1, score: 11}"),
		"utilization: Invalid value: 50: values must be sorted in increasing order": header + ratio("{utilization: 50, score: 1}, {utilization: 50, score: 2}"),
		`scoringStrategy.type: Unsupported value: "Any"`: header +
			"profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: Any}}}]}]\n",
		`unknown field "bogusArg"`: header + "profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {bogusArg: 1}}]}]\n",
		"NodeAffinityArgs":         header + "profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {kind: NodeAffinityArgs}}]}]\n",
		"minCandidateNodesPercentage: Invalid value: 101": header +
			"profiles: [{pluginConfig: [{name: DefaultPreemption, args: {minCandidateNodesPercentage: 101}}]}]\n",
		"minCandidateNodesAbsolute: Invalid value: -1: not in valid range [0, inf)": header +
			"profiles: [{pluginConfig: [{name: DefaultPreemption, args: {minCandidateNodesAbsolute: -1}}]}]\n",
		"cannot be zero at the same time as minCandidateNodesAbsolute": header +
			"profiles: [{pluginConfig: [{name: DefaultPreemption, args: {minCandidateNodesPercentage: 0, minCandidateNodesAbsolute: 0}}]}]\n",
		"takes no arguments":                          header + "profiles: [{pluginConfig: [{name: NodeName, args: {a: 1}}]}]\n",
		`scoringStrategy.type: Unsupported value: ""`: header + "profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {}}}]}]\n",
		"weight: Invalid value: 101: resource weight of cpu not in valid range (0, 100]": header +
			"profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: LeastAllocated, resources: [{name: cpu, weight: 101}]}}}]}]\n",
		"pluginConfig: unknown":           header + "profiles: [{pluginConfig: [{name: Nope}]}]\n",
		"NodePorts is duplicated":         header + "profiles: [{pluginConfig: [{name: NodePorts}, {name: NodePorts}]}]\n",
		"enabled: NodeName is duplicated": header + "profiles: [{plugins: {filter: {enabled: [{name: NodeName}, {name: NodeName}]}}}]\n",
		"ignoredResources[0]": header +
			"profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {ignoredResources: [a b]}}]}]\n",
		"ignoredResourceGroups[0]": header +
			"profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {ignoredResourceGroups: [a/b]}}]}]\n",
		`topologyKey: Invalid value: "a b": name part must consist`: header + spread("{maxSkew: 1, topologyKey: a b, whenUnsatisfiable: ScheduleAnyway}"),
	} {
		c, err := parse([]byte(file))
		if err == nil {
			_, err = c.Build(Services{})
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
}

// Fields without effect, as in kube-scheduler, are reported.
func TestWhatHasNoEffectIsNoted(t *testing.T) {
	for want, file := range map[string]string{
		"parallelism: ": header + "parallelism: 5\n",
		"plugin NodePorts: it is not enabled": header +
			"profiles: [{plugins: {multiPoint: {disabled: [{name: NodePorts}]}}, pluginConfig: [{name: NodePorts}]}]\n",
		"plugin EBSLimits: there is none of this": header + "profiles: [{plugins: {filter: {disabled: [{name: EBSLimits}]}}}]\n",
		"plugin DynamicResources: not supported:": header + "profiles: [{pluginConfig: [{name: DynamicResources}]}]\n",
	} {
		c, err := parse([]byte(file))
		if err == nil {
			_, err = c.Build(Services{})
		}
		if err != nil || !slices.ContainsFunc(c.Notes, func(note string) bool { return strings.Contains(note, want) }) {
			t.Errorf("want a note with %q, got %q (%v)", want, c.Notes, err)
		}
	}
}

// What kube-scheduler 1.37 writes down as its configuration (--write-config-to)
// is one for this scheduler: the same as without any, with notes on what it does
// otherwise.
func TestWhatKubeSchedulerWritesIsRead(t *testing.T) {
	c, err := Load("testdata/kube-scheduler-1.37.yaml")
	if err != nil {
		t.Fatal(err)
	}
	written, err := c.Build(Services{})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"clientConnection.qps", "this program always uses application/json", "plugin DynamicResources: "} {
		if !strings.Contains(strings.Join(c.Notes, "\n"), want) {
			t.Errorf("no note with %q in %q", want, c.Notes)
		}
	}
	if c, err = Default(); err != nil {
		t.Fatal(err)
	}
	byDefault, err := c.Build(Services{})
	if err != nil {
		t.Fatal(err)
	}
	got, want := written["default-scheduler"], byDefault["default-scheduler"]
	if !slices.Equal(names(got.Filter), names(want.Filter)) || !slices.EqualFunc(got.Score, want.Score, func(a, b framework.WeightedScore) bool {
		return a.Name() == b.Name() && a.Weight == b.Weight
	}) {
		t.Errorf("filters %v and scores %v, want %v and %v", names(got.Filter), got.Score, names(want.Filter), want.Score)
	}
}

func TestMissingFile(t *testing.T) {
	if _, err := Load(t.TempDir() + "/none.yaml"); err == nil || !strings.Contains(err.Error(), "none.yaml") {
		t.Errorf("got %v", err)
	}
}

// Errors name the line of the field that they are about.
func TestErrorsNameTheLine(t *testing.T) {
	for want, file := range map[string]string{
		`line 3: unknown field "bogus"`:                       header + "bogus: 1\n",
		"line 3: percentageOfNodesToScore: Invalid value: -1": header + "percentageOfNodesToScore: -1\n",
		"line 4: the file has a second YAML document":         header + "---\n---\n" + header,
		"line 3: parallelism: a string":                       header + "parallelism: many\n",
		`line 6: unknown field "profiles[1].plugin"`: header + `profiles:
- schedulerName: a
- schedulerName: b
  plugin: {}
`,
		"line 5: profiles[1].schedulerName": header + "profiles:\n- schedulerName: a\n- schedulerName: a\n",
		"line 1: apiVersion":                "apiVersion: v1\nkind: KubeSchedulerConfiguration\n",
		"line 4: leaderElection.resourceLock": header + `leaderElection:
  resourceLock: endpoints
`,
		"line 4: leaderElection.renewDeadline: 20s must be longer than 1.2 times the retryPeriod": header + `leaderElection:
  renewDeadline: 20s
  retryPeriod: 20s
`,
		"line 5: leaderElection.leaseDuration: 5s must be longer": header + `leaderElection:
  leaderElect: true
  leaseDuration: 5s
`,
		"line 3: podInitialBackoffSeconds": header + "podInitialBackoffSeconds: -1\n",
		"line 8: profile a: plugins.filter.enabled: unknown plugin": header + `profiles:
- schedulerName: a
  plugins:
    filter:
      enabled:
      - name: Nope
`,
		"line 13: profile b: plugin NodeResourcesFit: arguments: scoringStrategy.resources[0].weight": header + `profiles:
- schedulerName: a
- schedulerName: b
  pluginConfig:
  - name: NodeResourcesFit
    args:
      ignoredResources: []
      scoringStrategy:
        resources:
        - name: cpu
          weight: 101
        type: LeastAllocated
`,
		"line 8: profile a: plugin InterPodAffinity: arguments: unknown field": header + `profiles:
- schedulerName: a
  pluginConfig:
  - name: InterPodAffinity
    args:
      bogus: 1
`,
		"line 4: key \"parallelism\" already set": header + "parallelism: 1\nparallelism: 2\n",
	} {
		c, err := parse([]byte(file))
		if err == nil {
			_, err = c.Build(Services{})
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
}

// byName is a QueueSort plugin of a user's own.
type byName struct{}

func (byName) Name() string { return "ByName" }

func (byName) Less(a, b *framework.QueuedPodInfo) bool { return a.Pod.Name < b.Pod.Name }

// One plugin orders the pods of all profiles, with the same arguments.
func TestArgumentsOfTheOrder(t *testing.T) {
	services := Services{Plugins: map[string]framework.Factory{"ByName": func(json.RawMessage, framework.Handle) (framework.Plugin, error) {
		return byName{},
			nil
	}}}
	const order = "plugins: {queueSort: {enabled: [{name: ByName}], disabled: [{name: '*'}]}}"
	for second, want := range map[string]string{"{a: 1}": "", "{a: 2}": "profile b: all profiles share one queue and must have the same arguments of ByName"} {
		c, err := parse([]byte(header + "profiles:\n- {schedulerName: a, " + order + ", pluginConfig: [{name: ByName, args: {a: 1}}]}\n- {schedulerName: b, " +
			order + ", pluginConfig: [{name: ByName, args: " + second + "}]}\n"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Build(services); (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("with %s: %v, want %q", second, err, want)
		}
	}
}
