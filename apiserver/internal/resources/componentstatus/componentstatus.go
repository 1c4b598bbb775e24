// Package componentstatus reports the health of the cluster's components, for
// old clients: the resource is deprecated since v1.19. Nothing is stored: the
// answer is made on request.
package componentstatus

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/cell"
	"kctl/apiserver/internal/storage"
	"kctl/proto/core"
)

// etcd is the only component that the server can check.
const etcd = "etcd-0"

var resource = core.Resource{Version: "v1", Name: "componentstatuses", Kind: "ComponentStatus"}

// Served is the resource for o's storage.
func Served(o registry.Options) []registry.Served {
	return registry.Serve(&statuses{storage: o.Storage})
}

// statuses is a resource that can only be read.
type statuses struct{ storage storage.Interface }

func (s *statuses) Info() registry.Info {
	return registry.Info{
		Resource: resource, Singular: "componentstatus", ShortNames: []string{"cs"}, Verbs: []string{"get", "list"},
		Columns: cell.Describe(cell.Columns(nil, "Name", "Status", "Message", "Error"), map[string]string{
			"Status":  "Status of the component conditions",
			"Message": "Message of the component conditions",
			"Error":   "Error of the component conditions",
		}),
	}
}

func (s *statuses) New() core.Object    { return new(corev1.ComponentStatus) }
func (s *statuses) Default(core.Object) {}

func (s *statuses) Decode(e registry.Encoded) (core.Object, error) {
	obj := new(corev1.ComponentStatus)
	if err := json.Unmarshal(e.JSON, obj); err != nil {
		return nil, fmt.Errorf("decode component status: %w", err)
	}
	return obj, nil
}

func (s *statuses) Row(obj core.Object) []any {
	c := obj.(*corev1.ComponentStatus)
	status, message, problem := "Unknown", "", ""
	for _, condition := range c.Conditions {
		if condition.Type != corev1.ComponentHealthy {
			continue
		}
		status = "Healthy"
		if condition.Status != corev1.ConditionTrue {
			status = "Unhealthy"
		}
		message, problem = condition.Message, condition.Error
	}
	return []any{c.Name, status, message, problem}
}

func (s *statuses) Get(ctx context.Context, _, name, _ string) (registry.Encoded, error) {
	if name != etcd {
		return registry.Encoded{}, apierrors.NewNotFound(schema.GroupResource{Resource: "componentstatus"}, name)
	}
	return s.checkEtcd(ctx)
}

func (s *statuses) List(ctx context.Context, _ string, o registry.ListOptions) (registry.List, error) {
	if chosen, err := selectsEtcd(o); err != nil || !chosen {
		return registry.List{}, err
	}
	e, err := s.checkEtcd(ctx)
	return registry.List{Items: []registry.Encoded{e}}, err
}

// selectsEtcd reports whether the selectors match etcd, which has a name and no labels.
func selectsEtcd(o registry.ListOptions) (bool, error) {
	known := fields.Set{"metadata.name": etcd, "metadata.namespace": ""}
	if o.Fields != nil {
		for _, r := range o.Fields.Requirements() {
			if !known.Has(r.Field) {
				return false, registry.UnknownField(r.Field)
			}
		}
	}
	return (o.Fields == nil || o.Fields.Matches(known)) && (o.Labels == nil || o.Labels.Matches(labels.Set{})), nil
}

// checkEtcd checks etcd by a read.
func (s *statuses) checkEtcd(ctx context.Context) (registry.Encoded, error) {
	condition := corev1.ComponentCondition{Type: corev1.ComponentHealthy, Status: corev1.ConditionTrue, Message: "ok"}
	if _, err := s.storage.Revision(ctx); err != nil {
		condition.Status, condition.Message = corev1.ConditionFalse, err.Error()
	}
	text, err := json.Marshal(&corev1.ComponentStatus{
		TypeMeta:   metav1.TypeMeta{Kind: resource.Kind, APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Name: etcd}, Conditions: []corev1.ComponentCondition{condition},
	})
	if err != nil {
		return registry.Encoded{}, fmt.Errorf("encode component status: %w", err)
	}
	return registry.Encoded{JSON: text}, nil
}

// readOnly refuses verbs that no path leads to.
func readOnly(verb string) error {
	return apierrors.NewMethodNotSupported(schema.GroupResource{Resource: resource.Name}, verb)
}

func (s *statuses) Watch(context.Context, string, registry.ListOptions) (registry.Watcher, error) {
	return nil, readOnly("watch")
}

func (s *statuses) Create(context.Context, core.Object, registry.Admission, *metav1.CreateOptions) (registry.Encoded, error) {
	return registry.Encoded{}, readOnly("create")
}

func (s *statuses) Update(context.Context, registry.Target, registry.Transform, registry.Admission,
	*metav1.UpdateOptions) (registry.Encoded, bool, error) {
	return registry.Encoded{}, false, readOnly("update")
}

func (s *statuses) Delete(context.Context, string, string, registry.Admission, *metav1.DeleteOptions) (registry.Encoded, bool, error) {
	return registry.Encoded{}, false, readOnly("delete")
}

func (s *statuses) DeleteCollection(context.Context, string, registry.Admission, *metav1.DeleteOptions,
	registry.ListOptions) (registry.List, error) {
	return registry.List{}, readOnly("deletecollection")
}
