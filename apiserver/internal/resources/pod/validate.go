package pod

import (
	"math"

	corev1 "k8s.io/api/core/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/resources/check"
	"kctl/proto/core"
)

var (
	annotationsPath = field.NewPath("metadata", "annotations")
	specPath        = field.NewPath("spec")
	statusPath      = field.NewPath("status")
)

// validateCreate validates a new pod.
func validateCreate(pod *core.Pod) field.ErrorList {
	return field.Twice(specPath, func(spec *field.Path) field.ErrorList { return validatePod(pod, spec) })
}

func validatePod(pod *core.Pod, spec *field.Path) field.ErrorList {
	errs := validateAnnotations(pod.Annotations, &pod.Spec, annotationsPath, spec)
	errs = append(errs, validateSpec(&pod.Spec, spec)...)
	errs = append(errs, validateClaimNames(pod, spec.Child("volumes"))...)
	if pod.Spec.ServiceAccountName == "" {
		errs = append(errs, forbidTokens(pod.Spec.Volumes, spec.Child("volumes"))...)
	}
	if _, mirror := pod.Annotations[core.ConfigMirrorAnnotation]; mirror && len(pod.Spec.ResourceClaims) > 0 {
		errs = append(errs, field.Forbidden(field.NewPath(""), "static pods do not support resource claims"))
	}
	for _, group := range []struct {
		name       string
		containers []core.Container
	}{{"containers", pod.Spec.Containers}, {"initContainers", pod.Spec.InitContainers}} {
		for i := range group.containers {
			errs = append(errs, validateTrimmed(group.containers[i].Image, spec.Child(group.name).Index(i).Child("image"))...)
		}
	}
	if len(pod.Spec.EphemeralContainers) > 0 {
		errs = append(errs, field.Forbidden(spec.Child("ephemeralContainers"), "cannot be set on create"))
	}
	if pod.Spec.NodeName != "" && len(pod.Spec.SchedulingGates) > 0 {
		errs = append(errs, field.Forbidden(spec.Child("nodeName"), "cannot be set until all schedulingGates have been cleared"))
	}
	return errs
}

func validateSpec(spec *core.PodSpec, at *field.Path) field.ErrorList {
	if spec.TerminationGracePeriodSeconds == nil {
		return field.ErrorList{field.Required(at.Child("terminationGracePeriodSeconds"), "")}
	}
	volumes, errs := validateVolumes(spec.Volumes, at.Child("volumes"))
	scope := &containerScope{
		spec: spec, volumes: volumes, grace: *spec.TerminationGracePeriodSeconds, hostUsers: ptr.Deref(spec.HostUsers, true),
	}
	errs = append(errs, validateContainers(scope, at)...)
	errs = append(errs, validateInitContainers(scope, at)...)
	errs = append(errs, validateInitResizePolicies(spec.InitContainers, at.Child("initContainers"))...)
	errs = append(errs, validateEphemeralContainers(scope, at)...)
	errs = append(errs, validatePodResources(spec, at.Child("resources"))...)
	errs = append(errs, check.OneOfInOrder(spec.RestartPolicy, at.Child("restartPolicy"), restartPolicies...)...)
	errs = append(errs, check.OneOfInOrder(spec.DNSPolicy, at.Child("dnsPolicy"), dnsPolicies...)...)
	errs = append(errs, metav1validation.ValidateLabels(spec.NodeSelector, at.Child("nodeSelector").Upstream())...)
	errs = append(errs, validatePodSecurity(spec, at)...)
	errs = append(errs, validateAffinity(spec.Affinity, at.Child("affinity"))...)
	errs = append(errs, validateDNS(spec, at.Child("dnsConfig"))...)
	errs = append(errs, check.Tolerations(spec.Tolerations, at.Child("tolerations"))...)
	errs = append(errs, validateSpread(spec.TopologySpreadConstraints, at.Child("topologySpreadConstraints"))...)
	errs = append(errs, validateHostAliases(spec.HostAliases, at.Child("hostAliases"))...)
	errs = append(errs, validateGates(spec, at)...)
	errs = append(errs, validateNames(spec, at)...)
	errs = append(errs, validateHostname(spec, at)...)
	if spec.ActiveDeadlineSeconds != nil {
		errs = append(errs, inRange(*spec.ActiveDeadlineSeconds, 1, math.MaxInt32, at.Child("activeDeadlineSeconds"))...)
	}
	if spec.PreemptionPolicy != nil {
		errs = append(errs, check.OneOf(*spec.PreemptionPolicy, at.Child("preemptionPolicy"), preemptionPolicies...)...)
	}
	errs = append(errs, check.Overhead(spec.Overhead, at.Child("overhead"))...)
	if spec.OS != nil && spec.OS.Name == "" {
		errs = append(errs, field.Required(at.Child("os", "name"), ""))
	} else if spec.OS != nil {
		errs = append(errs, check.Supported(spec.OS.Name, at.Child("os"), operatingSystems...)...)
	}
	errs = append(errs, validateForOS(spec, at)...)
	errs = append(errs, validateHostProcess(spec, at)...)
	return append(errs, forbidAlphaFields(spec, at)...)
}

var (
	restartPolicies    = []corev1.RestartPolicy{corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever}
	dnsPolicies        = []corev1.DNSPolicy{corev1.DNSClusterFirstWithHostNet, corev1.DNSClusterFirst, corev1.DNSDefault, corev1.DNSNone}
	preemptionPolicies = []corev1.PreemptionPolicy{corev1.PreemptLowerPriority, corev1.PreemptNever}
	operatingSystems   = []corev1.OSName{corev1.Linux, corev1.Windows}
	pullPolicies       = []corev1.PullPolicy{corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever}
)

// validateNames validates the names by which a pod refers to other objects.
func validateNames(spec *core.PodSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, ref := range []struct{ field, name string }{
		{"serviceAccountName", spec.ServiceAccountName},
		{"nodeName", spec.NodeName},
		{"priorityClassName", spec.PriorityClassName},
	} {
		if ref.name != "" {
			errs = append(errs, check.Messages(at.Child(ref.field), ref.name, check.NameIsSubdomain(ref.name, false))...)
		}
	}
	if spec.RuntimeClassName != nil {
		errs = append(errs, check.Messages(at.Child("runtimeClassName"), *spec.RuntimeClassName,
			check.NameIsSubdomain(*spec.RuntimeClassName, false))...)
	}
	claims := sets.New[string]()
	for i, claim := range spec.ResourceClaims {
		path := at.Child("resourceClaims").Index(i)
		errs = append(errs, uniqueLabel(claim.Name, path.Child("name"), claims)...)
		switch {
		case claim.ResourceClaimName == nil && claim.ResourceClaimTemplateName == nil:
			errs = append(errs, field.Invalid(path, check.GoFieldNames{Value: claim},
				"must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"))
		case claim.ResourceClaimName != nil && claim.ResourceClaimTemplateName != nil:
			errs = append(errs, field.Invalid(path, check.GoFieldNames{Value: claim},
				"at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"))
		}
		if claim.ResourceClaimName != nil {
			errs = append(errs, check.Subdomain(*claim.ResourceClaimName, path.Child("resourceClaimName"))...)
		}
		if claim.ResourceClaimTemplateName != nil {
			errs = append(errs, check.Subdomain(*claim.ResourceClaimTemplateName, path.Child("resourceClaimTemplateName"))...)
		}
	}
	return errs
}

func validateGates(spec *core.PodSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, gate := range spec.ReadinessGates {
		errs = append(errs, check.QualifiedName(string(gate.ConditionType), at.Child("readinessGates").Index(i).Child("conditionType"))...)
	}
	seen := sets.New[string]()
	for i, gate := range spec.SchedulingGates {
		path := at.Child("schedulingGates").Index(i)
		errs = append(errs, check.QualifiedName(gate.Name, path)...)
		if seen.Has(gate.Name) {
			errs = append(errs, field.Duplicate(path, gate.Name))
		}
		seen.Insert(gate.Name)
	}
	return errs
}

const alphaMessage = "belongs to an alpha feature that this server does not have"

// forbidAlphaFields returns errors for fields of alpha features: upstream drops them
// silently, here the user is told.
func forbidAlphaFields(spec *core.PodSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(spec.EvictionResponders) > 0 {
		errs = append(errs, field.Forbidden(at.Child("evictionResponders"), alphaMessage))
	}
	if spec.SchedulingGroup != nil {
		errs = append(errs, field.Forbidden(at.Child("schedulingGroup"), alphaMessage))
	}
	return errs
}

// owner checks the user that owns a volume's files (the alpha feature
// AtomicWriteVolumeUserFields, which kctl's kubelet has).
func owner(user *int64, at *field.Path) field.ErrorList {
	if user == nil {
		return nil
	}
	return inRange(*user, 0, math.MaxInt32, at)
}

func inRange(value, low, high int64, at *field.Path) field.ErrorList {
	if value < low || value > high {
		return field.ErrorList{field.Invalid(at, value, validation.InclusiveRangeError(int(low), int(high)))}
	}
	return nil
}

// uniqueLabel checks that a name is a DNS label and not used before.
func uniqueLabel(name string, at *field.Path, seen sets.Set[string]) field.ErrorList {
	var errs field.ErrorList
	if name == "" {
		errs = append(errs, field.Required(at, ""))
	} else {
		errs = append(errs, check.Label(name, at)...)
	}
	if seen.Has(name) {
		errs = append(errs, field.Duplicate(at, name))
	}
	seen.Insert(name)
	return errs
}
