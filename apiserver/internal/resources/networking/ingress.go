package networking

import (
	"context"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/cell"
	"kctl/apiserver/internal/resources/check"
	"kctl/proto/core"
)

// Served are ingresses and network policies.
func Served(o registry.Options) []registry.Served {
	return registry.Serve(
		registry.NewStore(ingresses(o.Clock), o),
		registry.NewStore(networkPolicies(o.Clock), o),
	)
}

func resource(name, kind string, namespaced bool) core.Resource {
	return core.Resource{Group: networkingv1.GroupName, Version: "v1", Name: name, Kind: kind, Namespaced: namespaced}
}

// IngressClassResource are the ingress classes.
var IngressClassResource = resource("ingressclasses", "IngressClass", false)

// ClassAnnotation named an ingress's class before there was a field.
const ClassAnnotation = "kubernetes.io/ingress.class"

const shownHosts = 3

var (
	specPath     = field.NewPath("spec")
	balancerPath = field.NewPath("status", "loadBalancer", "ingress")
)

func ingresses(clock clock.PassiveClock) registry.Strategy[*networkingv1.Ingress] {
	return registry.WithStatus(registry.Strategy[*networkingv1.Ingress]{
		Resource: resource("ingresses", "Ingress", true), Singular: "ingress", ShortNames: []string{"ing"}, StoragePrefix: "ingress",
		HasGeneration: true,
		Create: registry.CreateStrategy[*networkingv1.Ingress]{
			ValidateName: check.NameIsSubdomain,
			Validate: func(_ context.Context, i *networkingv1.Ingress) field.ErrorList {
				errs := validateIngress(&i.Spec)
				if class, ok := i.Annotations[ClassAnnotation]; ok && i.Spec.IngressClassName != nil && class != *i.Spec.IngressClassName {
					errs = append(errs, field.Invalid(field.NewPath("annotations").Child(ClassAnnotation), class,
						"must match `ingressClassName` when both are specified"))
				}
				return errs
			},
			Warnings: func(_ context.Context, i *networkingv1.Ingress) []string {
				if _, ok := i.Annotations[ClassAnnotation]; ok && i.Spec.IngressClassName == nil {
					return []string{`annotation "` + ClassAnnotation + `" is deprecated, please use 'spec.ingressClassName' instead`}
				}
				return nil
			},
		},
		Update: registry.UpdateStrategy[*networkingv1.Ingress]{
			AllowUnconditional: true,
			Validate:           func(_ context.Context, i, _ *networkingv1.Ingress) field.ErrorList { return validateIngress(&i.Spec) },
		},
		Status: &registry.UpdateStrategy[*networkingv1.Ingress]{
			Validate: func(_ context.Context, i, old *networkingv1.Ingress) field.ErrorList {
				return validateAddresses(i.Status.LoadBalancer.Ingress, old.Status.LoadBalancer.Ingress, balancerPath)
			},
			Warnings: func(_ context.Context, i, _ *networkingv1.Ingress) []string { return statusWarnings(i) },
		},
		Read: registry.ReadStrategy[*networkingv1.Ingress]{
			Columns: cell.Describe(cell.Columns(networkingv1.IngressSpec{}.SwaggerDoc(),
				"Name", "Class=ingressClassName", "Hosts", "Address", "Ports", "Age",
			), map[string]string{
				"Class":   "The name of the IngressClass resource that should be used for additional configuration",
				"Hosts":   "Hosts that incoming requests are matched against before the ingress rule",
				"Address": "Address is a list containing ingress points for the load-balancer",
				"Ports":   "Ports of TLS configurations that open",
			}),
			Row: func(i *networkingv1.Ingress) []any {
				class := ptr.Deref(i.Spec.IngressClassName, i.Annotations[ClassAnnotation])
				ports := "80"
				if len(i.Spec.TLS) > 0 {
					ports = "80, 443"
				}
				return []any{i.Name, cell.OrNone(class), hosts(i.Spec.Rules), addresses(i), ports, cell.Age(clock.Now(), i.CreationTimestamp)}
			},
		},
	})
}

func hosts(rules []networkingv1.IngressRule) string {
	var list []string
	for _, rule := range rules {
		if rule.Host != "" {
			list = append(list, rule.Host)
		}
	}
	if len(list) == 0 {
		return "*"
	}
	return cell.Joined(list, shownHosts)
}

func addresses(i *networkingv1.Ingress) string {
	var list []string
	for _, at := range i.Status.LoadBalancer.Ingress {
		if at.IP != "" {
			list = append(list, at.IP)
		} else if at.Hostname != "" {
			list = append(list, at.Hostname)
		}
	}
	return strings.Join(list, ",")
}

// statusWarnings warns about load balancers' addresses in a non-canonical form.
func statusWarnings(i *networkingv1.Ingress) []string {
	var out []string
	for n, place := range i.Status.LoadBalancer.Ingress {
		if place.IP != "" {
			out = append(out, validation.GetWarningsForIP(balancerPath.Index(n).Upstream(), place.IP)...)
		}
	}
	return out
}

// IngressClasses is the strategy of ingress classes.
func IngressClasses(clock clock.PassiveClock) registry.Strategy[*networkingv1.IngressClass] {
	return registry.Strategy[*networkingv1.IngressClass]{
		Resource: IngressClassResource, Singular: "ingressclass",
		Default: func(c *networkingv1.IngressClass) {
			if p := c.Spec.Parameters; p != nil && p.Scope == nil {
				p.Scope = new(networkingv1.IngressClassParametersReferenceScopeCluster)
			}
		},
		HasGeneration: true,
		Create: registry.CreateStrategy[*networkingv1.IngressClass]{
			ValidateName: check.NameIsSubdomain,
			Validate:     func(_ context.Context, c *networkingv1.IngressClass) field.ErrorList { return validateClass(&c.Spec) },
		},
		Update: registry.UpdateStrategy[*networkingv1.IngressClass]{
			AllowUnconditional: true,
			Validate: func(_ context.Context, c, old *networkingv1.IngressClass) field.ErrorList {
				return append(check.Unchanged(c.Spec.Controller, old.Spec.Controller, specPath.Child("controller")), validateClass(&c.Spec)...)
			},
		},
		Read: registry.ReadStrategy[*networkingv1.IngressClass]{
			Columns: cell.Describe(cell.Columns(networkingv1.IngressClassSpec{}.SwaggerDoc(),
				"Name", "Controller=controller", "Parameters=parameters", "Age",
			), map[string]string{
				"Controller": "Controller that is responsible for handling this class",
				"Parameters": "A reference to a resource with additional parameters",
			}),
			Row: func(c *networkingv1.IngressClass) []any {
				parameters := cell.None
				if p := c.Spec.Parameters; p != nil {
					parameters = p.Kind
					if group := ptr.Deref(p.APIGroup, ""); group != "" {
						parameters = schema.GroupKind{Group: group, Kind: p.Kind}.String()
					}
					parameters += "/" + p.Name
				}
				name := c.Name
				if c.Annotations[networkingv1.AnnotationIsDefaultIngressClass] == "true" {
					name += " (default)"
				}
				return []any{name, c.Spec.Controller, parameters, cell.Age(clock.Now(), c.CreationTimestamp)}
			},
		},
	}
}
