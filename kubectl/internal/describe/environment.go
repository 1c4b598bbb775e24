package describe

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"kctl/proto/core"
)

func (p *page) environment(c *core.Container) {
	if len(c.EnvFrom) > 0 {
		p.head("Environment Variables from")
		for _, from := range c.EnvFrom {
			switch {
			case from.ConfigMapRef != nil:
				p.under(func() {
					p.text("%s\tConfigMap%s\tOptional: %t", from.ConfigMapRef.Name, prefixed(from.Prefix), ptr.Deref(from.ConfigMapRef.Optional, false))
				})
			case from.SecretRef != nil:
				p.under(func() {
					p.text("%s\tSecret%s\tOptional: %t", from.SecretRef.Name, prefixed(from.Prefix), ptr.Deref(from.SecretRef.Optional, false))
				})
			}
		}
	}
	if len(c.Env) == 0 {
		p.line("Environment", "<none>")
		return
	}
	p.head("Environment")
	for _, e := range c.Env {
		p.under(func() {
			first, rest, more := strings.Cut(p.envValue(c, e), "\n")
			p.line(e.Name, "%s", first)
			for more {
				first, rest, more = strings.Cut(rest, "\n")
				p.text("\t%s", first)
			}
		})
	}
}

func prefixed(prefix string) string {
	if prefix == "" {
		return ""
	}
	return " with prefix '" + prefix + "'"
}

func (p *page) envValue(c *core.Container, e corev1.EnvVar) string {
	from := e.ValueFrom
	switch {
	case from == nil:
		return e.Value
	case from.FieldRef != nil:
		return fmt.Sprintf("%s (%s:%s)", p.field(from.FieldRef.FieldPath), from.FieldRef.APIVersion, from.FieldRef.FieldPath)
	case from.ResourceFieldRef != nil:
		amount, resource := AmountOf(c, from.ResourceFieldRef), from.ResourceFieldRef.Resource
		if amount == "0" && (resource == "limits.cpu" || resource == "limits.memory") {
			amount = "node allocatable" // what the container gets that has no limit
		}
		return fmt.Sprintf("%s (%s)", amount, resource)
	case from.SecretKeyRef != nil:
		return fmt.Sprintf("<set to the key '%s' in secret '%s'>\tOptional: %t",
			from.SecretKeyRef.Key, from.SecretKeyRef.Name, ptr.Deref(from.SecretKeyRef.Optional, false))
	case from.ConfigMapKeyRef != nil:
		return fmt.Sprintf("<set to the key '%s' of config map '%s'>\tOptional: %t",
			from.ConfigMapKeyRef.Key, from.ConfigMapKeyRef.Name, ptr.Deref(from.ConfigMapKeyRef.Optional, false))
	case from.FileKeyRef != nil:
		return fmt.Sprintf("<set to the key '%s' in file '%s' of volume '%s'>\tOptional: %t",
			from.FileKeyRef.Key, from.FileKeyRef.Path, from.FileKeyRef.VolumeName, ptr.Deref(from.FileKeyRef.Optional, false))
	}
	return "<unknown source>"
}

// field is what stands in a field of the pod's metadata; a template has none
// yet.
func (p *page) field(path string) string {
	if p.pod == nil {
		return ""
	}
	switch path {
	case "metadata.name":
		return p.pod.Name
	case "metadata.namespace":
		return p.pod.Namespace
	case "metadata.uid":
		return string(p.pod.UID)
	}
	return ""
}

// AmountOf is how much a container has of a resource, in units of the divisor,
// rounded up.
func AmountOf(c *core.Container, of *corev1.ResourceFieldSelector) string {
	which, name, _ := strings.Cut(of.Resource, ".")
	list := c.Resources.Limits
	if which == "requests" {
		list = c.Resources.Requests
	}
	amount, divisor := list[corev1.ResourceName(name)], of.Divisor
	have, unit := amount.Value(), divisor.Value()
	if name == string(corev1.ResourceCPU) {
		if have, unit = amount.MilliValue(), divisor.MilliValue(); unit == 0 {
			unit = 1000
		}
	}
	if unit = max(unit, 1); have%unit > 0 {
		have += unit
	}
	return strconv.FormatInt(have/unit, 10)
}
