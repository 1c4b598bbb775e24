package operators_test

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Boat is the operator's custom resource: each boat gets a config map with the
// names of its crew.
type Boat struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   BoatSpec   `json:"spec"`
	Status BoatStatus `json:"status,omitempty"`
}

type BoatSpec struct {
	Oars int    `json:"oars,omitempty"`
	Port string `json:"port,omitempty"`
}

type BoatStatus struct {
	Seats int `json:"seats,omitempty"`
}

func (b *Boat) DeepCopyObject() runtime.Object {
	out := *b
	b.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return &out
}

type BoatList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Boat `json:"items"`
}

func (l *BoatList) DeepCopyObject() runtime.Object {
	out := *l
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = nil
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopyObject().(*Boat))
	}
	return &out
}

var harbour = schema.GroupVersion{Group: "harbour.test", Version: "v1"}

func definition() *apiextensionsv1.CustomResourceDefinition {
	object := func(properties map[string]apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
		return apiextensionsv1.JSONSchemaProps{Type: "object", Properties: properties}
	}
	whole := object(map[string]apiextensionsv1.JSONSchemaProps{
		"spec": object(map[string]apiextensionsv1.JSONSchemaProps{
			"oars": {Type: "integer"}, "port": {Type: "string", Default: &apiextensionsv1.JSON{Raw: []byte(`"home"`)}},
		}),
		"status": object(map[string]apiextensionsv1.JSONSchemaProps{"seats": {Type: "integer"}}),
	})
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "boats.harbour.test"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: harbour.Group,
			Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "boats", Singular: "boat", Kind: "Boat", ListKind: "BoatList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name:         harbour.Version,
				Served:       true,
				Storage:      true,
				Schema:       &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &whole},
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
			}},
		},
	}
}

// boats is the operator.
type boats struct{ client.Client }

const mooring = "harbour.test/mooring"

// Reconcile adds the finalizer, writes the crew's names, and counts the seats.
// The finalizer of a deleted boat is removed last.
func (r *boats) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	boat := &Boat{}
	if err := r.Get(ctx, request.NamespacedName, boat); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !boat.DeletionTimestamp.IsZero() {
		controllerutil.RemoveFinalizer(boat, mooring)
		return ctrl.Result{}, client.IgnoreNotFound(r.Update(ctx, boat))
	}
	if controllerutil.AddFinalizer(boat, mooring) {
		return ctrl.Result{}, r.Update(ctx, boat)
	}
	crew := map[string]string{}
	for i := range boat.Spec.Oars {
		crew[fmt.Sprintf("seat-%d", i)] = "rower"
	}
	owner := applymetav1.OwnerReference().WithAPIVersion(harbour.String()).WithKind("Boat").WithName(boat.Name).WithUID(boat.UID).WithController(true).WithBlockOwnerDeletion(true)
	list := applycorev1.ConfigMap(boat.Name, boat.Namespace).WithOwnerReferences(owner).WithData(crew)
	if err := r.Apply(ctx, list, client.FieldOwner("boats"), client.ForceOwnership); err != nil {
		return ctrl.Result{}, fmt.Errorf("apply the crew: %w", err)
	}
	if boat.Status.Seats == len(crew) {
		return ctrl.Result{}, nil
	}
	before := boat.DeepCopyObject().(*Boat)
	boat.Status.Seats = len(crew)
	return ctrl.Result{}, r.Status().Patch(ctx, boat, client.MergeFrom(before))
}

// Default implements admission.Defaulter: two oars, if the boat says nothing of
// oars.
func (r *boats) Default(_ context.Context, boat *Boat) error {
	if boat.Spec.Oars == 0 {
		boat.Spec.Oars = 2
	}
	return nil
}

func even(boat *Boat) (admission.Warnings, error) {
	var warnings admission.Warnings
	if boat.Spec.Oars > 8 {
		warnings = append(warnings, "a boat of that length does not turn")
	}
	if boat.Spec.Oars%2 == 1 {
		return warnings, fmt.Errorf("a boat with %d oars goes round in circles", boat.Spec.Oars)
	}
	return warnings, nil
}

// ValidateCreate implements admission.Validator.
func (r *boats) ValidateCreate(_ context.Context, boat *Boat) (admission.Warnings, error) {
	return even(boat)
}

// ValidateUpdate implements admission.Validator.
func (r *boats) ValidateUpdate(_ context.Context, _, boat *Boat) (admission.Warnings, error) {
	return even(boat)
}

// ValidateDelete implements admission.Validator.
func (r *boats) ValidateDelete(context.Context, *Boat) (admission.Warnings, error) { return nil, nil }

// crewOf are the people on a boat's list, nobody if there is no list.
func crewOf(ctx context.Context, c client.Reader, name string) (map[string]string, error) {
	list := &corev1.ConfigMap{}
	err := c.Get(ctx, client.ObjectKey{Namespace: "default", Name: name}, list)
	return maps.Clone(list.Data), client.IgnoreNotFound(err)
}
