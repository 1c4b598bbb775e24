package pod

import (
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/field"
	"kctl/proto/core"
)

func TestValidateUpdate(t *testing.T) {
	seconds := func(n int64) *int64 { return &n }
	const terms = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
	expr := func(key string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpExists}
	}
	on := func(of ...corev1.NodeSelectorRequirement) func(p *core.Pod) {
		return func(p *core.Pod) {
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: of}},
			}}}
		}
	}
	gated := func(p *core.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "g"}} }
	annotated := func(profile string) *core.Pod {
		p := minimal()
		p.Annotations = map[string]string{appArmorContainerPrefix + "main": profile}
		return p
	}
	for name, c := range map[string]struct {
		old, pod *core.Pod
		want     string
	}{
		"nothing": {minimal(), minimal(), ""},
		"image":   {minimal(), minimal(func(p *core.Pod) { p.Spec.Containers[0].Image = "x:2"; p.Spec.Containers[0].ImagePullPolicy = "Always" }), ""},
		"no image": {minimal(), minimal(func(p *core.Pod) { p.Spec.Containers[0].Image = ""; p.Spec.Containers[0].ImagePullPolicy = "Always" }),
			"spec.containers[0].image: Required value"},
		"deadline": {minimal(), minimal(func(p *core.Pod) { p.Spec.ActiveDeadlineSeconds = seconds(5) }), ""},
		"later": {minimal(func(p *core.Pod) { p.Spec.ActiveDeadlineSeconds = seconds(5) }),
			minimal(func(p *core.Pod) { p.Spec.ActiveDeadlineSeconds = seconds(6) }),
			"spec.activeDeadlineSeconds: Invalid value: 6: must be less than or equal to previous value"},
		"no more": {minimal(func(p *core.Pod) { p.Spec.ActiveDeadlineSeconds = seconds(5) }), minimal(),
			"spec.activeDeadlineSeconds: Invalid value: null: must not update from a positive integer to nil value"},
		"toleration": {minimal(), minimal(func(p *core.Pod) { p.Spec.Tolerations = []corev1.Toleration{{Key: "k", Operator: "Exists"}} }), ""},
		"tolerates less": {minimal(func(p *core.Pod) { p.Spec.Tolerations = []corev1.Toleration{{Key: "k", Operator: "Exists"}} }), minimal(),
			"spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds"},
		"one container more": {minimal(), minimal(func(p *core.Pod) {
			p.Spec.Containers = append(p.Spec.Containers, core.Container{Name: "b", Image: "i"})
		}),
			"spec.containers: Forbidden: pod updates may not add or remove containers"},
		"env": {minimal(), minimal(func(p *core.Pod) { p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A"}} }),
			"spec: Forbidden: " + mutableFieldsMessage + "\nchanged: spec.containers[0].env"},
		"node":            {minimal(), minimal(func(p *core.Pod) { p.Spec.NodeName = "n" }), "spec: Forbidden: " + mutableFieldsMessage + "\nchanged: spec.nodeName"},
		"gate removed":    {minimal(gated), minimal(), ""},
		"gate added":      {minimal(), minimal(gated), "spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate 'g'"},
		"gated, narrower": {minimal(gated), minimal(gated, func(p *core.Pod) { p.Spec.NodeSelector = map[string]string{"a": "b"} }), ""},
		"gated, other selector": {minimal(gated, func(p *core.Pod) { p.Spec.NodeSelector = map[string]string{"a": "b"} }), minimal(gated),
			`spec.nodeSelector: Invalid value: null: only additions to spec.nodeSelector are allowed (no mutations or deletions)`},
		"gated, first term":    {minimal(gated), minimal(gated, on(expr("a"))), ""},
		"gated, narrower term": {minimal(gated, on(expr("a"))), minimal(gated, on(expr("a"), expr("b"))), ""},
		"gated, wider term":    {minimal(gated, on(expr("a"))), minimal(gated, on(expr("b"), expr("a"))), terms + "[0]: Invalid value: "},
		"gated, term goes": {minimal(gated, on(expr("a"))), minimal(gated),
			terms + ": Invalid value: null: no additions/deletions to non-empty NodeSelectorTerms list are allowed"},
		"gated, term of nobody": {minimal(gated, on()), minimal(gated, on(expr("a"))), terms + "[0]: Invalid value: "},
		"selector, no gate":     {minimal(), minimal(func(p *core.Pod) { p.Spec.NodeSelector = map[string]string{"a": "b"} }), "spec: Forbidden: "},
		"grace negative to 1": {minimal(func(p *core.Pod) { p.Spec.TerminationGracePeriodSeconds = seconds(-3) }),
			minimal(func(p *core.Pod) { p.Spec.TerminationGracePeriodSeconds = seconds(1) }), ""},
		"confined": {annotated("runtime/default"), annotated("runtime/default"), ""},
		"let out": {minimal(), annotated("unconfined"), "metadata.annotations[" + appArmorContainerPrefix +
			"main]: Forbidden: may not add AppArmor annotations"},
		"let out later": {annotated("runtime/default"), annotated("unconfined"),
			"metadata.annotations[" + appArmorContainerPrefix + "main]: Forbidden: may not remove or update AppArmor annotations"},
		"unconfined": {annotated("runtime/default"), minimal(), "metadata.annotations[" + appArmorContainerPrefix +
			"main]: Forbidden: may not remove or update AppArmor annotations"},
		"mirror annotation": {minimal(), minimal(func(p *core.Pod) {
			p.Annotations = map[string]string{core.ConfigMirrorAnnotation: "x"}
			p.Spec.NodeName = "n"
		}), ""},
	} {
		if name == "mirror annotation" {
			c.old.Spec.NodeName = "n"
			c.want = "metadata.annotations[kubernetes.io/config.mirror]: Forbidden: may not add mirror pod annotation"
		}
		checkErrors(t, name, validateUpdate(c.pod, c.old), c.want)
	}
}

func TestStatusUpdate(t *testing.T) {
	now := metav1.Now()
	old := minimal(func(p *core.Pod) {
		p.Spec.NodeName = "n"
		p.DeletionTimestamp = &now
		p.Status.QOSClass = corev1.PodQOSBestEffort
		p.OwnerReferences = []metav1.OwnerReference{{Name: "o"}}
	})
	pod := old.DeepCopy()
	pod.Spec.NodeName, pod.DeletionTimestamp, pod.OwnerReferences, pod.Status.QOSClass = "other", nil, nil, ""
	prepareStatus(t.Context(), pod, old)
	if pod.Spec.NodeName != "n" || pod.DeletionTimestamp == nil || len(pod.OwnerReferences) != 1 || pod.Status.QOSClass != corev1.PodQOSBestEffort {
		t.Errorf("a status update changed what is not status: %+v", pod)
	}

	ended := func(code int32) *core.Pod {
		return minimal(func(p *core.Pod) {
			p.Spec.RestartPolicy = corev1.RestartPolicyNever
			p.Status.ContainerStatuses = []core.ContainerStatus{{
				Name: "main", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}},
			}}
		})
	}
	revived := minimal(func(p *core.Pod) {
		p.Status.ContainerStatuses = []core.ContainerStatus{{Name: "main", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	})
	checkErrors(t, "a dead container lives again", validateStatus(revived, ended(0)),
		"status.containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state")
	together := ended(0)
	together.Spec.Containers = append(together.Spec.Containers, core.Container{
		Name: "other", RestartPolicyRules: []corev1.ContainerRestartRule{{Action: corev1.ContainerRestartRuleActionRestartAllContainers}},
	})
	checkErrors(t, "all containers are restarted", validateStatus(revived, together), "")
	failing := ended(1)
	failing.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
	checkErrors(t, "a failed container is restarted", validateStatus(revived, failing), "")
}

// TestEndsOfContainers: containers leave their end only as their restart policies and rules say.
func TestEndsOfContainers(t *testing.T) {
	never, onFailure, always := corev1.ContainerRestartPolicyNever, corev1.ContainerRestartPolicyOnFailure, corev1.ContainerRestartPolicyAlways
	on42 := []corev1.ContainerRestartRule{{
		Action:    corev1.ContainerRestartRuleActionRestart,
		ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: corev1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{42}},
	}}
	const forbidden = "].state: Forbidden: may not be transitioned to non-terminated state"
	for name, test := range map[string]struct {
		pod   corev1.RestartPolicy
		own   *corev1.ContainerRestartPolicy
		rules []corev1.ContainerRestartRule
		code  int32
		stays bool
	}{
		"the pod's always":                {pod: corev1.RestartPolicyAlways},
		"the pod's, failed":               {pod: corev1.RestartPolicyOnFailure, code: 1},
		"the pod's, not failed":           {pod: corev1.RestartPolicyOnFailure, stays: true},
		"its own never":                   {pod: corev1.RestartPolicyAlways, own: &never, code: 1, stays: true},
		"its own always":                  {pod: corev1.RestartPolicyNever, own: &always},
		"its own, failed":                 {pod: corev1.RestartPolicyNever, own: &onFailure, code: 1},
		"its own, not failed":             {pod: corev1.RestartPolicyAlways, own: &onFailure, stays: true},
		"a rule about its exit code":      {pod: corev1.RestartPolicyNever, own: &never, rules: on42, code: 42},
		"a rule about another exit code":  {pod: corev1.RestartPolicyNever, own: &never, rules: on42, code: 41, stays: true},
		"a rule about another, and allow": {pod: corev1.RestartPolicyNever, own: &onFailure, rules: on42, code: 41},
	} {
		status := func(state corev1.ContainerState) []core.ContainerStatus {
			return []core.ContainerStatus{{Name: "other"}, {Name: "c", State: state}}
		}
		dead := status(corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: test.code}})
		alive := status(corev1.ContainerState{Running: &corev1.ContainerStateRunning{}})
		c := core.Container{Name: "c", RestartPolicy: test.own, RestartPolicyRules: test.rules}
		want := func(group string) string {
			if !test.stays {
				return ""
			}
			return "status." + group + "[1" + forbidden
		}
		of := func(change func(*core.Pod)) *core.Pod {
			return minimal(func(p *core.Pod) { p.Spec.RestartPolicy = test.pod }, change)
		}
		regular := of(func(p *core.Pod) { p.Spec.Containers = append(p.Spec.Containers, c); p.Status.ContainerStatuses = dead })
		checkErrors(t, name, validateStatus(of(func(p *core.Pod) { p.Status.ContainerStatuses = alive }), regular), want("containerStatuses"))
		initial := of(func(p *core.Pod) {
			p.Spec.InitContainers = []core.Container{c}
			p.Status.InitContainerStatuses = dead
		})
		checkErrors(t, name+", an init container", validateStatus(of(func(p *core.Pod) { p.Status.InitContainerStatuses = alive }), initial),
			want("initContainerStatuses"))
		ephemeral := of(func(p *core.Pod) { p.Status.EphemeralContainerStatuses = dead })
		checkErrors(t, name+", an ephemeral container", validateStatus(of(func(p *core.Pod) { p.Status.EphemeralContainerStatuses = alive }), ephemeral),
			"status.ephemeralContainerStatuses[1"+forbidden)
		checkErrors(t, name+", it stays", validateStatus(ephemeral, ephemeral), "")
	}
	unknown := minimal(func(p *core.Pod) {
		p.Status.ContainerStatuses = []core.ContainerStatus{{Name: "gone", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}}
	})
	revived := minimal(func(p *core.Pod) { p.Status.ContainerStatuses = []core.ContainerStatus{{Name: "gone"}} })
	checkErrors(t, "one that the pod does not have", validateStatus(revived, unknown), "status.containerStatuses[0"+forbidden)
}

func TestEphemeralUpdate(t *testing.T) {
	debugger := func(image string) func(*core.Pod) {
		return func(p *core.Pod) {
			p.Spec.EphemeralContainers = append(p.Spec.EphemeralContainers, corev1.EphemeralContainer{
				EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", Image: image},
			})
		}
	}
	checkErrors(t, "added", validateEphemeralUpdate(t.Context(), minimal(debugger("i")), minimal()), "")
	checkErrors(t, "removed", validateEphemeralUpdate(t.Context(), minimal(), minimal(debugger("i"))),
		`spec.ephemeralContainers: Forbidden: existing ephemeral containers "debug" may not be removed`)
	checkErrors(t, "changed", validateEphemeralUpdate(t.Context(), minimal(debugger("i")), minimal(debugger("j"))),
		`spec.ephemeralContainers: Forbidden: existing ephemeral containers "debug" may not be changed`)
	withPort := minimal(debugger("i"), func(p *core.Pod) {
		p.Spec.EphemeralContainers[0].Ports = []corev1.ContainerPort{{ContainerPort: 1}}
	})
	checkErrors(t, "with a port", validateEphemeralUpdate(t.Context(), withPort, minimal()),
		"spec.ephemeralContainers[0].ports: Forbidden: cannot be set for an Ephemeral Container")

	pod, old := minimal(debugger("i")), minimal()
	pod.Spec.NodeName = "sneaked"
	prepareEphemeral(t.Context(), pod, old)
	if pod.Spec.NodeName != "" || len(pod.Spec.EphemeralContainers) != 1 {
		t.Errorf("ephemeralcontainers changed more than those: %+v", pod.Spec)
	}
}

func TestResize(t *testing.T) {
	sized := func(requests, limits corev1.ResourceList) func(*core.Pod) {
		return func(p *core.Pod) {
			p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: requests, Limits: limits}
			p.Status.QOSClass = qosClass(&p.Spec)
		}
	}
	cpu := func(amount string) corev1.ResourceList {
		return corev1.ResourceList{"cpu": resource.MustParse(amount)}
	}
	more := corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("1Mi")}
	disk := corev1.ResourceList{"cpu": resource.MustParse("1"), "ephemeral-storage": resource.MustParse("1Mi")}
	restarting := func(p *core.Pod) {
		p.Spec.Containers[0].ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: "cpu", RestartPolicy: corev1.RestartContainer}}
	}
	initial := func(amount string) func(*core.Pod) {
		return func(p *core.Pod) {
			c := *p.Spec.Containers[0].DeepCopy()
			c.Name, c.Resources.Requests = "init", cpu(amount)
			p.Spec.InitContainers = []core.Container{c}
		}
	}
	whole := func(requests corev1.ResourceList) func(*core.Pod) {
		return func(p *core.Pod) { p.Spec.Resources = &corev1.ResourceRequirements{Requests: requests} }
	}
	burstable := minimal(sized(cpu("1"), nil))
	for _, tc := range []struct {
		name     string
		now, was *core.Pod
		want     string
	}{
		{"more", minimal(sized(cpu("2"), nil)), burstable, ""},
		{"a limit comes", minimal(sized(more, cpu("3"))), burstable, ""},
		{"a limit goes", burstable, minimal(sized(cpu("1"), cpu("2"))), "spec.containers[0].resources.limits: Forbidden: resource limits cannot be removed"},
		{"more than the limit", minimal(sized(cpu("3"), cpu("2"))), minimal(sized(cpu("1"), cpu("2"))),
			`spec.containers[0].resources.requests: Invalid value: "3": must be less than or equal to cpu limit of 2`},
		{"another class", minimal(sized(more, more)), burstable, `spec: Invalid value: "Burstable": Pod QOS Class may not change as a result of resizing`},
		{"another resource", minimal(sized(disk, nil)), burstable, "spec: Forbidden: only cpu and memory resources are mutable"},
		{"another policy", minimal(sized(cpu("1"), nil), restarting), burstable, "spec: Forbidden: only cpu and memory resources are mutable"},
		{"another container", minimal(sized(cpu("1"), nil), func(p *core.Pod) { p.Spec.Containers[0].Name = "z" }), burstable,
			"spec.containers[0].name: Forbidden: containers may not be renamed or reordered on resize"},
		{"an init container more", minimal(sized(cpu("1"), nil), initial("1")), burstable,
			"spec.initContainers: Forbidden: initContainers may not be added or removed on resize"},
		{"an init container grows", minimal(sized(cpu("1"), nil), initial("2")), minimal(sized(cpu("1"), nil), initial("1")), ""},
		{"the pod grows", minimal(sized(cpu("1"), nil), whole(cpu("3"))), minimal(sized(cpu("1"), nil), whole(cpu("2"))), ""},
		{"of the pod, to nothing", minimal(whole(cpu("0"))), minimal(func(p *core.Pod) { p.Status.QOSClass = corev1.PodQOSBurstable }, whole(cpu("1"))),
			`spec: Invalid value: "Burstable": Pod QOS Class may not change as a result of resizing`},
		{"of the pod, empty", minimal(sized(cpu("1"), nil), whole(nil)), burstable, "spec: Forbidden: only cpu and memory resources are mutable"},
		{"of the pod something goes", minimal(sized(cpu("1"), nil), whole(cpu("3"))), minimal(sized(cpu("1"), nil), whole(more)),
			"spec.resources.requests: Forbidden: pod-level resource requests cannot be removed"},
		{"ended", minimal(sized(cpu("2"), nil)), minimal(sized(cpu("1"), nil), func(p *core.Pod) { p.Status.Phase = corev1.PodFailed }), ""},
		{"of Windows", minimal(sized(cpu("2"), nil)), minimal(sized(cpu("1"), nil), func(p *core.Pod) { p.Spec.OS = &corev1.PodOS{Name: corev1.Windows} }),
			"[]: Forbidden: windows pods cannot be resized"},
	} {
		checkErrors(t, tc.name, validateResize(t.Context(), tc.now, tc.was), tc.want)
	}

	pod := minimal(sized(cpu("2"), nil), func(p *core.Pod) { p.Spec.NodeName, p.Spec.Containers[0].Image = "sneaked", "sneaked" })
	prepareResize(t.Context(), pod, burstable)
	if got := pod.Spec.Containers[0].Resources.Requests.Cpu(); pod.Spec.NodeName != "" || pod.Spec.Containers[0].Image == "sneaked" || got.Value() != 2 {
		t.Errorf("resize changed more than resources, or not them: %+v", pod.Spec)
	}
}

// TestAllIsLookedAt: the store leaves out an error that a stored pod had, which must not hide what else is changed.
func TestAllIsLookedAt(t *testing.T) {
	old := minimal(func(p *core.Pod) { p.Spec.ActiveDeadlineSeconds = new(int64(-1)) })
	now := old.DeepCopy()
	now.Spec.NodeName = "another"
	errs := validateUpdate(now, old)
	checkErrors(t, "behind the deadline", errs[len(errs)-1:], "spec: Forbidden: pod updates may not change fields other than")

	now = old.DeepCopy()
	now.Spec.Resources = &corev1.ResourceRequirements{}
	errs = validateResize(t.Context(), now, old)
	checkErrors(t, "resized to nothing", errs[len(errs)-1:], "spec: Forbidden: only cpu and memory resources are mutable")
}

// TestRestartsOnResize: of init containers, only sidecars may be restarted to get another size.
func TestRestartsOnResize(t *testing.T) {
	restarting := minimal(func(p *core.Pod) {
		c := *p.Spec.Containers[0].DeepCopy()
		c.Name, c.ResizePolicy = "init", []corev1.ContainerResizePolicy{{ResourceName: "cpu", RestartPolicy: corev1.RestartContainer}}
		p.Spec.InitContainers = []core.Container{c}
	})
	checkErrors(t, "new", validateCreate(restarting),
		`spec.initContainers[0].resizePolicy[0].restartPolicy: Invalid value: "RestartContainer": must not be set to 'RestartContainer' for non-sidecar initContainers`)
	was := restarting.DeepCopy()
	was.Spec.InitContainers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("1")}
	now := was.DeepCopy()
	now.Spec.InitContainers[0].Resources.Requests["cpu"] = resource.MustParse("2")
	errs := validateResize(t.Context(), now, was) // behind what is wrong with both, which the store leaves out
	checkErrors(t, "one that is stored", errs[len(errs)-1:],
		"spec.initContainers[0]: Forbidden: non-sidecar init containers with a resize policy of RestartContainer cannot be resized")
	checkErrors(t, "in a template", ValidateTemplate(&corev1.PodTemplateSpec{Spec: restarting.Spec}, field.NewPath("template")),
		`template.spec.initContainers[0].resizePolicy[0].restartPolicy: Invalid value: "RestartContainer": must not be set`)
	restarting.Spec.InitContainers[0].RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
	checkErrors(t, "a sidecar", validateCreate(restarting), "")
}

// TestMirrorClaims: nobody could give a static pod the devices that it claims.
func TestMirrorClaims(t *testing.T) {
	mirror := minimal(func(p *core.Pod) {
		p.Spec.NodeName = "n"
		p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "c", ResourceClaimName: new("c")}}
	})
	checkErrors(t, "an ordinary pod", validateCreate(mirror), "")
	mirror.Annotations = map[string]string{core.ConfigMirrorAnnotation: "x"}
	checkErrors(t, "a mirror pod", validateCreate(mirror), "[]: Forbidden: static pods do not support resource claims")
}

// TestLongUpdates: what it takes to compare lists with the old ones does not grow with
// the square of their length. It would otherwise take longer than a test may.
func TestLongUpdates(t *testing.T) {
	const many = 400_000
	long := minimal(func(p *core.Pod) {
		for i := range many {
			name := strconv.Itoa(i)
			p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: name, Operator: corev1.TolerationOpExists})
			p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, corev1.PodResourceClaim{Name: name})
			p.Status.ResourceClaimStatuses = append(p.Status.ResourceClaimStatuses, corev1.PodResourceClaimStatus{Name: name})
		}
	})
	for _, at := range []int{0, many - 1} {
		less := long.DeepCopy()
		less.Spec.Tolerations[at].Key = "other"
		if errs := onlyAddedTolerations(less.Spec.Tolerations, long.Spec.Tolerations, specPath); len(errs) != 1 {
			t.Errorf("%d: %v", at, errs)
		}
	}
	if errs := validateClaimStatuses(long, specPath); len(errs) != 0 {
		t.Errorf("claims: %v", errs)
	}
}
