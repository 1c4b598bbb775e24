package pod

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/resources/check"
	"kctl/proto/core"
)

// containerScope is what a container's fields are checked against.
type containerScope struct {
	spec      *core.PodSpec
	volumes   map[string]*corev1.VolumeSource // the valid ones
	named     map[string]*corev1.Volume       // see volumeNamed
	grace     int64
	hostUsers bool
}

var (
	messagePolicies   = []corev1.TerminationMessagePolicy{corev1.TerminationMessageReadFile, corev1.TerminationMessageFallbackToLogsOnError}
	containerRestarts = []corev1.ContainerRestartPolicy{corev1.ContainerRestartPolicyAlways, corev1.ContainerRestartPolicyNever,
		corev1.ContainerRestartPolicyOnFailure}
	protocols      = []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP}
	restartActions = []corev1.ContainerRestartRuleAction{corev1.ContainerRestartRuleActionRestart,
		corev1.ContainerRestartRuleActionRestartAllContainers}
	exitCodeOperators = []corev1.ContainerRestartRuleOnExitCodesOperator{corev1.ContainerRestartRuleOnExitCodesOpIn,
		corev1.ContainerRestartRuleOnExitCodesOpNotIn}
)

const (
	maxRestartRules     = 20
	maxRestartExitCodes = 255
)

func validateContainers(s *containerScope, at *field.Path) field.ErrorList {
	containers := at.Child("containers")
	if len(s.spec.Containers) == 0 {
		return field.ErrorList{field.Required(containers, "")}
	}
	var errs field.ErrorList
	names := sets.New[string]()
	for i := range s.spec.Containers {
		c, path := &s.spec.Containers[i], containers.Index(i)
		errs = append(errs, uniqueLabel(c.Name, path.Child("name"), names)...)
		errs = append(errs, s.container(c, path)...)
		errs = append(errs, s.lifecycleAndProbes(c, path)...)
	}
	return append(errs, hostPortConflicts(s.spec, at)...)
}

func validateInitContainers(s *containerScope, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	names := sets.New[string]()
	for i := range s.spec.Containers {
		names.Insert(s.spec.Containers[i].Name)
	}
	for i := range s.spec.InitContainers {
		c, path := &s.spec.InitContainers[i], at.Child("initContainers").Index(i)
		errs = append(errs, uniqueLabel(c.Name, path.Child("name"), names)...)
		errs = append(errs, s.container(c, path)...)
		if core.IsSidecar(c) {
			errs = append(errs, s.lifecycleAndProbes(c, path)...)
			continue
		}
		for _, f := range []struct {
			name string
			set  bool
		}{
			{"lifecycle", c.Lifecycle != nil}, {"livenessProbe", c.LivenessProbe != nil},
			{"readinessProbe", c.ReadinessProbe != nil}, {"startupProbe", c.StartupProbe != nil},
		} {
			if f.set {
				errs = append(errs, field.Forbidden(path.Child(f.name), "may not be set for init containers without restartPolicy=Always"))
			}
		}
	}
	return errs
}

// container validates what is common to all kinds of containers.
func (s *containerScope) container(c *core.Container, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if c.Image == "" {
		errs = append(errs, field.Required(at.Child("image"), ""))
	}
	errs = append(errs, check.SupportedInOrder(c.TerminationMessagePolicy, at.Child("terminationMessagePolicy"), messagePolicies...)...)
	errs = append(errs, validatePorts(c.Ports, at.Child("ports"))...)
	errs = append(errs, validateEnv(c.Env, at.Child("env"))...)
	errs = append(errs, s.variableFiles(c.Env, at.Child("env"))...)
	errs = append(errs, validateEnvFrom(c.EnvFrom, at.Child("envFrom"))...)
	errs = append(errs, s.mounts(c, at)...)
	if len(c.VolumeDevices) > 0 && !s.hostUsers {
		errs = append(errs, field.Forbidden(at.Child("volumeDevices"), "when `hostUsers` is false"))
	}
	errs = append(errs, check.OneOf(c.ImagePullPolicy, at.Child("imagePullPolicy"), pullPolicies...)...)
	errs = append(errs, check.Requirements(&c.Resources, check.ContainerResource, at.Child("resources"))...)
	errs = append(errs, validateClaimsOf(c.Resources.Claims, s.spec.ResourceClaims, at.Child("resources", "claims"))...)
	errs = append(errs, validateResizePolicy(c.ResizePolicy, s.spec.RestartPolicy, at.Child("resizePolicy"))...)
	errs = append(errs, validateContainerSecurity(c.SecurityContext, s.hostUsers, at.Child("securityContext"))...)
	return append(errs, validateRestartRules(c, at)...)
}

func validateRestartRules(c *core.Container, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if c.RestartPolicy != nil {
		errs = append(errs, check.Supported(*c.RestartPolicy, at.Child("restartPolicy"), containerRestarts...)...)
	}
	rules := at.Child("restartPolicyRules")
	if len(c.RestartPolicyRules) > 0 && c.RestartPolicy == nil {
		errs = append(errs, field.Required(at.Child("restartPolicy"), "must specify restartPolicy when restart rules are used"))
	}
	if len(c.RestartPolicyRules) > maxRestartRules {
		errs = append(errs, field.TooMany(rules, len(c.RestartPolicyRules), maxRestartRules))
	}
	for i, rule := range c.RestartPolicyRules {
		path := rules.Index(i)
		errs = append(errs, check.Supported(rule.Action, path.Child("action"), restartActions...)...)
		codes := path.Child("exitCodes")
		if rule.ExitCodes == nil {
			errs = append(errs, field.Required(codes, "must be specified"))
			continue
		}
		errs = append(errs, check.Supported(rule.ExitCodes.Operator, codes.Child("operator"), exitCodeOperators...)...)
		if len(rule.ExitCodes.Values) > maxRestartExitCodes {
			errs = append(errs, field.TooMany(codes.Child("values"), len(rule.ExitCodes.Values), maxRestartExitCodes))
		}
	}
	return errs
}

func validatePorts(ports []corev1.ContainerPort, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	names := sets.New[string]()
	for i, port := range ports {
		path := at.Index(i)
		if port.Name != "" {
			texts := validation.IsValidPortName(port.Name)
			errs = append(errs, check.Messages(path.Child("name"), port.Name, texts)...)
			if len(texts) == 0 && names.Has(port.Name) {
				errs = append(errs, field.Duplicate(path.Child("name"), port.Name))
			}
			names.Insert(port.Name)
		}
		if port.ContainerPort == 0 {
			errs = append(errs, field.Required(path.Child("containerPort"), ""))
		} else {
			errs = append(errs, portNumber(port.ContainerPort, path.Child("containerPort"))...)
		}
		if port.HostPort != 0 {
			errs = append(errs, portNumber(port.HostPort, path.Child("hostPort"))...)
		}
		errs = append(errs, check.OneOf(port.Protocol, path.Child("protocol"), protocols...)...)
	}
	return errs
}

func portNumber(port int32, at *field.Path) field.ErrorList {
	return check.Messages(at, port, validation.IsValidPortNum(int(port)))
}

// hostPortConflicts checks that containers that run at the same time don't use
// the same host port. Init containers run one after the other and conflict only
// with themselves; so do sidecars, which keep running: upstream does not look.
func hostPortConflicts(spec *core.PodSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	taken := sets.New[string]()
	claim := func(taken sets.Set[string], c *core.Container, path *field.Path) {
		for i, port := range c.Ports {
			if port.HostPort == 0 {
				continue
			}
			key := fmt.Sprintf("%s/%s/%d", port.Protocol, port.HostIP, port.HostPort)
			if taken.Has(key) {
				errs = append(errs, field.Duplicate(path.Child("ports").Index(i).Child("hostPort"), key))
			}
			taken.Insert(key)
		}
	}
	for i := range spec.Containers {
		claim(taken, &spec.Containers[i], at.Child("containers").Index(i))
	}
	for i := range spec.InitContainers {
		claim(sets.New[string](), &spec.InitContainers[i], at.Child("initContainers").Index(i))
	}
	return errs
}

func validateTrimmed(image string, at *field.Path) field.ErrorList {
	if len(strings.TrimSpace(image)) != len(image) {
		return field.ErrorList{field.Invalid(at, image, "must not have leading or trailing whitespace")}
	}
	return nil
}
