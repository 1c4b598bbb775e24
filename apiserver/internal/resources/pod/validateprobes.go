package pod

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/resources/check"
	"kctl/proto/core"
)

var schemes = []corev1.URIScheme{corev1.URISchemeHTTP, corev1.URISchemeHTTPS}

// lifecycleAndProbes validates hooks and probes, which only long-running
// containers may have.
func (s *containerScope) lifecycleAndProbes(c *core.Container, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if c.Lifecycle != nil {
		path := at.Child("lifecycle")
		if h := c.Lifecycle.PostStart; h != nil {
			errs = append(errs, s.hook(h, path.Child("postStart"))...)
		}
		if h := c.Lifecycle.PreStop; h != nil {
			errs = append(errs, s.hook(h, path.Child("preStop"))...)
		}
		if signal := c.Lifecycle.StopSignal; signal != nil {
			errs = append(errs, validateStopSignal(*signal, s.spec.OS, path.Child("stopSignal"))...)
		}
	}
	errs = append(errs, validateProbe(c.LivenessProbe, at.Child("livenessProbe"))...)
	errs = append(errs, validateProbe(c.ReadinessProbe, at.Child("readinessProbe"))...)
	errs = append(errs, validateProbe(c.StartupProbe, at.Child("startupProbe"))...)

	// Liveness and startup probes succeed at the first success; only readiness counts.
	for name, probe := range map[string]*corev1.Probe{
		"livenessProbe": c.LivenessProbe, "readinessProbe": c.ReadinessProbe, "startupProbe": c.StartupProbe,
	} {
		if probe == nil {
			continue
		}
		if probe.SuccessThreshold != 1 && probe != c.ReadinessProbe {
			errs = append(errs, field.Invalid(at.Child(name, "successThreshold"), probe.SuccessThreshold, "must be 1"))
		}
		if grace := probe.TerminationGracePeriodSeconds; grace != nil && *grace <= 0 {
			errs = append(errs, field.Invalid(at.Child(name, "terminationGracePeriodSeconds"), *grace, "must be greater than 0"))
		}
	}
	if p := c.ReadinessProbe; p != nil && p.TerminationGracePeriodSeconds != nil {
		errs = append(errs, field.Invalid(at.Child("readinessProbe", "terminationGracePeriodSeconds"), *p.TerminationGracePeriodSeconds,
			"must not be set for readinessProbes"))
	}
	return errs
}

func validateProbe(p *corev1.Probe, at *field.Path) field.ErrorList {
	if p == nil {
		return nil
	}
	errs := validateHandler(handler{exec: p.Exec, httpGet: p.HTTPGet, tcp: p.TCPSocket, grpc: p.GRPC}, 0, at)
	for _, f := range []struct {
		name  string
		value int32
	}{
		{"initialDelaySeconds", p.InitialDelaySeconds}, {"timeoutSeconds", p.TimeoutSeconds},
		{"periodSeconds", p.PeriodSeconds}, {"successThreshold", p.SuccessThreshold}, {"failureThreshold", p.FailureThreshold},
	} {
		errs = append(errs, check.Nonnegative(int64(f.value), at.Child(f.name))...)
	}
	return errs
}

func (s *containerScope) hook(h *corev1.LifecycleHandler, at *field.Path) field.ErrorList {
	return validateHandler(handler{exec: h.Exec, httpGet: h.HTTPGet, tcp: h.TCPSocket, sleep: h.Sleep}, s.grace, at)
}

// handler checks that a probe or a hook has exactly one action, and validates it.
type handler struct {
	exec    *corev1.ExecAction
	httpGet *corev1.HTTPGetAction
	tcp     *corev1.TCPSocketAction
	grpc    *corev1.GRPCAction
	sleep   *corev1.SleepAction
}

func validateHandler(h handler, grace int64, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	found := 0
	for _, kind := range []struct {
		name  string
		set   bool
		check func(at *field.Path) field.ErrorList
	}{
		{"exec", h.exec != nil, func(at *field.Path) field.ErrorList {
			if len(h.exec.Command) == 0 {
				return field.ErrorList{field.Required(at.Child("command"), "")}
			}
			return nil
		}},
		{"httpGet", h.httpGet != nil, func(at *field.Path) field.ErrorList { return validateHTTPGet(h.httpGet, at) }},
		{"tcpSocket", h.tcp != nil, func(at *field.Path) field.ErrorList { return portOrName(h.tcp.Port, at.Child("port")) }},
		{"grpc", h.grpc != nil, func(at *field.Path) field.ErrorList { return validateGRPC(h.grpc, at) }},
		{"sleep", h.sleep != nil, func(at *field.Path) field.ErrorList {
			if h.sleep.Seconds < 0 || h.sleep.Seconds > grace {
				return field.ErrorList{field.Invalid(at, h.sleep.Seconds,
					fmt.Sprintf("must be non-negative and less than terminationGracePeriodSeconds (%d)", grace))}
			}
			return nil
		}},
	} {
		if !kind.set {
			continue
		}
		if found++; found > 1 {
			errs = append(errs, field.Forbidden(at.Child(kind.name), "may not specify more than 1 handler type"))
			continue
		}
		errs = append(errs, kind.check(at.Child(kind.name))...)
	}
	if found == 0 {
		errs = append(errs, field.Required(at, "must specify a handler type"))
	}
	return errs
}

func validateHTTPGet(get *corev1.HTTPGetAction, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if get.Path == "" {
		errs = append(errs, field.Required(at.Child("path"), ""))
	}
	errs = append(errs, portOrName(get.Port, at.Child("port"))...)
	errs = append(errs, check.OneOf(get.Scheme, at.Child("scheme"), schemes...)...)
	for _, header := range get.HTTPHeaders {
		errs = append(errs, check.Messages(at.Child("httpHeaders"), header.Name, validation.IsHTTPHeaderName(header.Name))...)
	}
	if get.Protocol != nil {
		errs = append(errs, field.Forbidden(at.Child("protocol"), alphaMessage))
	}
	return errs
}

func validateGRPC(grpc *corev1.GRPCAction, at *field.Path) field.ErrorList {
	errs := portNumber(grpc.Port, at.Child("port"))
	if grpc.Mode != nil {
		errs = append(errs, field.Forbidden(at.Child("mode"), alphaMessage))
	}
	return errs
}

func portOrName(port intstr.IntOrString, at *field.Path) field.ErrorList {
	if port.Type == intstr.Int {
		return check.Messages(at, port.IntValue(), validation.IsValidPortNum(port.IntValue()))
	}
	return check.Messages(at, port.StrVal, validation.IsValidPortName(port.StrVal))
}
