package eventhandlers

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kctl/proto/core"
)

// wirePod is the part of a pod that is decoded: what is needed to place and
// count pods. The rest, most of the bytes, is skipped. Parts that thousands of
// pods have in common stay encoded, to be looked up (shared).
type wirePod struct {
	Metadata wireMeta `json:"metadata"`
	Spec     wireSpec `json:"spec"`
	Status   struct {
		Phase                 corev1.PodPhase              `json:"phase"`
		NominatedNodeName     string                       `json:"nominatedNodeName"`
		StartTime             *metav1.Time                 `json:"startTime"`
		Conditions            []corev1.PodCondition        `json:"conditions"`
		Resources             *corev1.ResourceRequirements `json:"resources"`
		AllocatedResources    corev1.ResourceList          `json:"allocatedResources"`
		ContainerStatuses     []wireStatus                 `json:"containerStatuses"`
		InitContainerStatuses []wireStatus                 `json:"initContainerStatuses"`
	} `json:"status"`
}

type wireMeta struct {
	Name              string                  `json:"name"`
	Namespace         string                  `json:"namespace"`
	UID               types.UID               `json:"uid"`
	ResourceVersion   string                  `json:"resourceVersion"`
	Generation        int64                   `json:"generation"`
	CreationTimestamp metav1.Time             `json:"creationTimestamp"`
	DeletionTimestamp *metav1.Time            `json:"deletionTimestamp"`
	Labels            jsontext.Value          `json:"labels"`
	Annotations       passed                  `json:"annotations"`
	ManagedFields     passed                  `json:"managedFields"`
	OwnerReferences   []metav1.OwnerReference `json:"ownerReferences"`
}

type wireSpec struct {
	Volumes                   []jsontext.Value                  `json:"volumes"`
	InitContainers            []wireContainer                   `json:"initContainers"`
	Containers                []wireContainer                   `json:"containers"`
	EphemeralContainers       jsontext.Value                    `json:"ephemeralContainers"`
	NodeSelector              map[string]string                 `json:"nodeSelector"`
	NodeName                  string                            `json:"nodeName"`
	HostNetwork               bool                              `json:"hostNetwork"`
	Affinity                  *corev1.Affinity                  `json:"affinity"`
	SchedulerName             string                            `json:"schedulerName"`
	Tolerations               jsontext.Value                    `json:"tolerations"`
	Priority                  *int32                            `json:"priority"`
	PreemptionPolicy          *corev1.PreemptionPolicy          `json:"preemptionPolicy"`
	Overhead                  corev1.ResourceList               `json:"overhead"`
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints"`
	SchedulingGates           []corev1.PodSchedulingGate        `json:"schedulingGates"`
	ResourceClaims            []corev1.PodResourceClaim         `json:"resourceClaims"`
	Resources                 *corev1.ResourceRequirements      `json:"resources"`
	SchedulingGroup           *corev1.PodSchedulingGroup        `json:"schedulingGroup"`
	HostUsers                 *bool                             `json:"hostUsers"`
}

type wireContainer struct {
	Name          string         `json:"name"`
	Image         string         `json:"image"`
	Ports         jsontext.Value `json:"ports"`
	RestartPolicy string         `json:"restartPolicy"`
	Resources     struct {
		Requests jsontext.Value `json:"requests"`
		Limits   jsontext.Value `json:"limits"`
	} `json:"resources"`
	RestartPolicyRules jsontext.Value `json:"restartPolicyRules"`
	VolumeMounts       jsontext.Value `json:"volumeMounts"`

	Command        passed `json:"command"`
	Env            passed `json:"env"`
	LivenessProbe  passed `json:"livenessProbe"`
	ReadinessProbe passed `json:"readinessProbe"`
	StartupProbe   passed `json:"startupProbe"`
}

// passed is what is skipped. Naming the members that are long in nearly every pod
// saves the time that the library would take to parse unnamed members in order to
// skip them.
type passed struct{}

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (*passed) UnmarshalJSONFrom(from *jsontext.Decoder) error {
	_, err := from.ReadValue()
	return err
}

// UnmarshalJSON implements json.Unmarshaler, for what only that library takes.
func (*passed) UnmarshalJSON([]byte) error { return nil }

type wireStatus struct {
	Name               string                       `json:"name"`
	Resources          *corev1.ResourceRequirements `json:"resources"`
	AllocatedResources corev1.ResourceList          `json:"allocatedResources"`
}

// decodePod reads a pod; with s it shares parts that other pods have, too.
func decodePod(data []byte, s *shared) (*core.Pod, error) {
	var w wirePod
	if err := core.Decode(data, &w); err != nil {
		return nil, err
	}
	pod := &core.Pod{
		ObjectMeta: w.Metadata.decode(),
		Status: core.PodStatus{
			Phase: w.Status.Phase, NominatedNodeName: w.Status.NominatedNodeName, StartTime: w.Status.StartTime,
			Conditions: w.Status.Conditions, Resources: w.Status.Resources, AllocatedResources: w.Status.AllocatedResources,
			ContainerStatuses: resized(w.Status.ContainerStatuses), InitContainerStatuses: resized(w.Status.InitContainerStatuses),
		},
	}
	var err error
	if pod.Labels, err = s.labels.of(w.Metadata.Labels); err != nil {
		return nil, fmt.Errorf("labels: %w", err)
	}
	if err = w.Spec.decode(&pod.Spec, s); err == nil && w.Spec.mayNeedFeatures() {
		err = addFeatures(pod, data)
	}
	return pod, err
}

// mayNeedFeatures reports whether a pod may need something for which not every
// kubelet is new enough; few do.
func (w *wireSpec) mayNeedFeatures() bool {
	mountOptions := []byte(`"bindMountOptions"`)
	needs := func(c wireContainer) bool {
		return len(c.RestartPolicyRules) > 0 || bytes.Contains(c.VolumeMounts, mountOptions)
	}
	return w.HostUsers != nil || bytes.Contains(w.EphemeralContainers, mountOptions) || slices.ContainsFunc(w.Containers, needs) ||
		slices.ContainsFunc(w.InitContainers, needs)
}

// wireFeatures is what is decoded of such a pod in addition.
type wireFeatures struct {
	Spec struct {
		HostUsers           *bool                       `json:"hostUsers"`
		InitContainers      []wireAddition              `json:"initContainers"`
		Containers          []wireAddition              `json:"containers"`
		EphemeralContainers []corev1.EphemeralContainer `json:"ephemeralContainers"`
	} `json:"spec"`
}

type wireAddition struct {
	RestartPolicyRules []corev1.ContainerRestartRule `json:"restartPolicyRules"`
	VolumeMounts       []corev1.VolumeMount          `json:"volumeMounts"`
}

// addFeatures adds what such a pod says.
func addFeatures(pod *core.Pod, data []byte) error {
	var w wireFeatures
	if err := core.Decode(data, &w); err != nil {
		return err
	}
	add := func(containers []core.Container, additions []wireAddition) []core.Container {
		containers = slices.Clone(containers) // others may share them
		for i := range containers {
			containers[i].RestartPolicyRules, containers[i].VolumeMounts = additions[i].RestartPolicyRules, additions[i].VolumeMounts
		}
		return containers
	}
	pod.Spec.HostUsers, pod.Spec.EphemeralContainers = w.Spec.HostUsers, w.Spec.EphemeralContainers
	pod.Spec.Containers, pod.Spec.InitContainers = add(pod.Spec.Containers, w.Spec.Containers),
		add(pod.Spec.InitContainers, w.Spec.InitContainers)
	return nil
}

// decode leaves out the labels.
func (w *wireMeta) decode() metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: w.Name, Namespace: w.Namespace, UID: w.UID, ResourceVersion: w.ResourceVersion, Generation: w.Generation,
		CreationTimestamp: w.CreationTimestamp, DeletionTimestamp: w.DeletionTimestamp, OwnerReferences: w.OwnerReferences,
	}
}

func (w *wireSpec) decode(spec *core.PodSpec, s *shared) (err error) {
	*spec = core.PodSpec{
		NodeSelector: w.NodeSelector, NodeName: w.NodeName, HostNetwork: w.HostNetwork, Affinity: w.Affinity, SchedulerName: w.SchedulerName,
		Priority: w.Priority, PreemptionPolicy: w.PreemptionPolicy, Overhead: w.Overhead, TopologySpreadConstraints: w.TopologySpreadConstraints,
		SchedulingGates: w.SchedulingGates, ResourceClaims: w.ResourceClaims, Resources: w.Resources, SchedulingGroup: w.SchedulingGroup,
	}
	if spec.Tolerations, err = s.tolerations.of(w.Tolerations); err != nil {
		return fmt.Errorf("tolerations: %w", err)
	}
	if spec.Containers, err = s.containersOf(w.Containers); err != nil {
		return fmt.Errorf("containers: %w", err)
	}
	if spec.InitContainers, err = s.containersOf(w.InitContainers); err != nil {
		return fmt.Errorf("init containers: %w", err)
	}
	if spec.Volumes, err = bindingVolumes(w.Volumes); err != nil {
		return fmt.Errorf("volumes: %w", err)
	}
	return nil
}

// bindingVolumes are volumes that not every node can have.
func bindingVolumes(encoded []jsontext.Value) (volumes []corev1.Volume, err error) {
	for _, text := range encoded {
		// Only the presence of the value counts; its content is skipped.
		var anywhere struct {
			Projected   *struct{} `json:"projected"`
			EmptyDir    *struct{} `json:"emptyDir"`
			ConfigMap   *struct{} `json:"configMap"`
			Secret      *struct{} `json:"secret"`
			DownwardAPI *struct{} `json:"downwardAPI"`
			HostPath    *struct{} `json:"hostPath"`
		}
		none := anywhere
		if err := core.Decode(text, &anywhere); err != nil {
			return nil, err
		}
		if anywhere != none {
			continue
		}
		var volume corev1.Volume
		if err := core.Decode(text, &volume); err != nil {
			return nil, err
		}
		volumes = append(volumes, volume)
	}
	return volumes, nil
}

// resized are the statuses that say what a container is given.
func resized(statuses []wireStatus) (kept []core.ContainerStatus) {
	for _, s := range statuses {
		if s.Resources != nil || s.AllocatedResources != nil {
			kept = append(kept, core.ContainerStatus{Name: s.Name, Resources: s.Resources, AllocatedResources: s.AllocatedResources})
		}
	}
	return kept
}

// wireNode is what is read of a node.
type wireNode struct {
	Metadata wireMeta `json:"metadata"`
	Spec     struct {
		Unschedulable bool           `json:"unschedulable"`
		Taints        []corev1.Taint `json:"taints"`
	} `json:"spec"`
	Status struct {
		Allocatable jsontext.Value          `json:"allocatable"`
		Images      []corev1.ContainerImage `json:"images"`

		DeclaredFeatures []string `json:"declaredFeatures"`
	} `json:"status"`
}

// decodeNode reads a node. Its labels are its own: they have its name.
func decodeNode(data []byte, s *shared) (*core.Node, error) {
	var w wireNode
	if err := core.Decode(data, &w); err != nil {
		return nil, err
	}
	node := &core.Node{
		ObjectMeta: w.Metadata.decode(),
		Spec:       corev1.NodeSpec{Unschedulable: w.Spec.Unschedulable, Taints: w.Spec.Taints},
		Status:     corev1.NodeStatus{Images: w.Status.Images, DeclaredFeatures: w.Status.DeclaredFeatures},
	}
	if len(w.Metadata.Labels) > 0 {
		if err := core.Decode(w.Metadata.Labels, &node.Labels); err != nil {
			return nil, fmt.Errorf("labels: %w", err)
		}
	}
	var err error
	if node.Status.Allocatable, err = s.resources.of(w.Status.Allocatable); err != nil {
		return nil, fmt.Errorf("allocatable: %w", err)
	}
	return node, nil
}
