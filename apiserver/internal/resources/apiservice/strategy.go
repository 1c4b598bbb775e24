package apiservice

import (
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/cell"
	"kctl/apiserver/internal/resources/check"
	"kctl/proto/core"
)

// APIService says which server serves a group and version.
type APIService = apiregistrationv1.APIService

// Condition is one of an APIService's.
type Condition = apiregistrationv1.APIServiceCondition

// resource is where they are.
var resource = core.Resource{
	Group: apiregistrationv1.GroupName, Version: "v1", Name: "apiservices", Kind: "APIService",
}

// DefaultPort is the port of services that name none.
const DefaultPort = 443

// Strategy is how they are kept.
func Strategy(clock clock.PassiveClock) registry.Strategy[*APIService] {
	return registry.Strategy[*APIService]{
		Resource: resource, Singular: "apiservice", Categories: []string{"api-extensions"},
		StoragePrefix: "apiregistration.k8s.io/apiservices",
		New:           func() *APIService { return new(APIService) },
		Default: func(s *APIService) {
			if s.Spec.Service != nil && s.Spec.Service.Port == nil {
				s.Spec.Service.Port = new(int32(DefaultPort))
			}
		},
		Create: registry.CreateStrategy[*APIService]{
			Prepare: func(_ context.Context, s *APIService) {
				s.Status = apiregistrationv1.APIServiceStatus{}
				if s.Spec.Service == nil {
					SetCondition(s, LocalCondition(), clock.Now())
				}
			},
			ValidateName: check.NameIsSegment,
			Validate:     func(_ context.Context, s *APIService) field.ErrorList { return validate(s) },
		},
		Update: registry.UpdateStrategy[*APIService]{
			Prepare:  func(_ context.Context, s, old *APIService) { s.Status = old.Status },
			Validate: func(_ context.Context, s, _ *APIService) field.ErrorList { return validate(s) },
		},
		Status: &registry.UpdateStrategy[*APIService]{
			ResetFields: []string{"metadata"},
			Prepare: func(_ context.Context, s, old *APIService) {
				s.Spec = old.Spec
				s.Labels, s.Annotations, s.Finalizers, s.OwnerReferences = old.Labels, old.Annotations, old.Finalizers, old.OwnerReferences
			},
			Validate: func(_ context.Context, s, _ *APIService) field.ErrorList { return validateStatus(s) },
		},
		Read: registry.ReadStrategy[*APIService]{
			Columns: []metav1.TableColumnDefinition{
				cell.Name(), cell.Text("Service", "The reference to the service that hosts this API endpoint."),
				cell.Text("Available", "Whether this service is available."), cell.AgeColumn(),
			},
			Row: func(s *APIService) []any {
				return []any{s.Name, host(s), availability(s), cell.Age(clock.Now(), s.CreationTimestamp)}
			},
		},
	}
}

// Name is the name of the APIService of a group and version.
func Name(gv schema.GroupVersion) string { return gv.Version + "." + gv.Group }

// GroupVersion is an APIService's group and version.
func GroupVersion(s *APIService) schema.GroupVersion {
	return schema.GroupVersion{Group: s.Spec.Group, Version: s.Spec.Version}
}

// LocalCondition is the condition of the server's own APIServices.
func LocalCondition() Condition {
	return Condition{
		Type: apiregistrationv1.Available, Status: apiregistrationv1.ConditionTrue,
		Reason: "Local", Message: "Local APIServices are always available",
	}
}

// HasCondition reports whether an APIService already has such a condition.
func HasCondition(s *APIService, c Condition) bool {
	return slices.ContainsFunc(s.Status.Conditions, func(have Condition) bool {
		return have.Type == c.Type && have.Status == c.Status && have.Reason == c.Reason && have.Message == c.Message
	})
}

// IsAvailable reports whether its server is known to be available.
func IsAvailable(s *APIService) bool {
	return slices.ContainsFunc(s.Status.Conditions, func(c Condition) bool {
		return c.Type == apiregistrationv1.Available && c.Status == apiregistrationv1.ConditionTrue
	})
}

// SetCondition sets a condition. The time of the last transition is now if the
// status changes.
func SetCondition(s *APIService, c Condition, now time.Time) {
	c.LastTransitionTime = metav1.NewTime(now).Rfc3339Copy()
	i := slices.IndexFunc(s.Status.Conditions, func(have Condition) bool { return have.Type == c.Type })
	if i < 0 {
		s.Status.Conditions = append(s.Status.Conditions, c)
		return
	}
	if have := s.Status.Conditions[i]; have.Status == c.Status {
		c.LastTransitionTime = have.LastTransitionTime
	}
	s.Status.Conditions[i] = c
}

func host(s *APIService) string {
	if s.Spec.Service == nil {
		return "Local"
	}
	return s.Spec.Service.Namespace + "/" + s.Spec.Service.Name
}

func availability(s *APIService) string {
	for _, c := range s.Status.Conditions {
		if c.Type != apiregistrationv1.Available {
			continue
		}
		if c.Status != apiregistrationv1.ConditionTrue {
			return string(c.Status) + " (" + c.Reason + ")"
		}
		return string(c.Status)
	}
	return string(apiregistrationv1.ConditionUnknown)
}
