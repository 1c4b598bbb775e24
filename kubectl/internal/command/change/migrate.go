package change

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"kctl/kubectl/internal/command/lookup"
	"kctl/kubectl/internal/command/send"
	"kctl/kubectl/internal/threeway"
	"kctl/proto/rest"
)

// annotationManager owns the annotation of client-side applies on an object that has
// changed to server-side apply, which would remove it. The server keeps it up to date
// for send.FieldManager, for users who go back.
const annotationManager = "kubectl-last-applied"

var lastAppliedPath = fieldpath.NewSet(fieldpath.MakePathOrDie("metadata", "annotations", threeway.LastApplied))

// ownersOf are the managers that own the annotation by one operation.
func ownersOf(object *unstructured.Unstructured, operation metav1.ManagedFieldsOperationType) sets.Set[string] {
	names := sets.New[string]()
	for _, entry := range csaupgrade.FindFieldsOwners(object.GetManagedFields(), operation, lastAppliedPath) {
		names.Insert(entry.Manager)
	}
	return names
}

// migrate transfers the fields that client-side applies managed to the server-side
// manager, so that fields left out of the file are removed, and applies once more if
// that changes something. A failure is only reported, and tried again with the next
// apply: the requested apply is done already.
func (a *applyOptions) migrate(ctx context.Context, t lookup.Target, applied *unstructured.Unstructured,
	again func() (*unstructured.Unstructured, error)) *unstructured.Unstructured {
	applied, err := a.keepAnnotation(ctx, t, applied)
	if err != nil {
		a.Warn("failed to migrate %s for Server-Side Apply. This is non-fatal and will be retried next time you apply. Error: %v",
			threeway.LastApplied, err)
		return applied
	}
	migrated, err := a.takeOver(ctx, t, applied)
	if err != nil {
		a.Warn("server rejected managed fields migration to Server-Side Apply. This is non-fatal and will be retried "+
			"next time you apply. Error: %v", err)
	}
	if err != nil || migrated == nil {
		return applied
	}
	reapplied, err := again()
	if err != nil {
		a.Warn("failed to re-apply configuration after performing Server-Side Apply migration. This is non-fatal and will be retried "+
			"next time you apply. Error: %v", err)
		return migrated
	}
	return reapplied
}

// keepAnnotation gives the annotation a manager of its own, unless another manager
// would keep it.
func (a *applyOptions) keepAnnotation(ctx context.Context, t lookup.Target,
	object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	text, remembered := object.GetAnnotations()[threeway.LastApplied]
	if a.Manager != send.FieldManager || !remembered || len(ownersOf(object, metav1.ManagedFieldsOperationApply)) > 0 {
		return object, nil
	}
	alone := &unstructured.Unstructured{}
	alone.SetGroupVersionKind(t.GVK())
	alone.SetName(object.GetName())
	alone.SetNamespace(object.GetNamespace())
	alone.SetAnnotations(map[string]string{threeway.LastApplied: text})
	body, err := json.Marshal(alone.Object)
	if err != nil {
		return object, fmt.Errorf("encoding the annotation: %w", err)
	}
	kept, err := a.sendAs(ctx, t, annotationManager, types.ApplyPatchType, body, rest.Sub(a.subresource))
	if err != nil {
		return object, err
	}
	return kept, nil
}

// takeOver transfers the fields of client-side managers; nil if there are none.
func (a *applyOptions) takeOver(ctx context.Context, t lookup.Target,
	object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	from := ownersOf(object, metav1.ManagedFieldsOperationUpdate)
	for attempt := 0; ; attempt++ {
		patch, err := csaupgrade.UpgradeManagedFieldsPatch(object, from, a.Manager)
		if err != nil {
			return nil, fmt.Errorf("working out who manages what: %w", err)
		}
		if patch == nil {
			return nil, nil
		}
		migrated, err := a.send(ctx, t, types.JSONPatchType, patch, rest.Sub(a.subresource))
		if err == nil || !apierrors.IsConflict(err) || attempt == send.MaxConflicts {
			return migrated, err
		}
		now, err := lookup.Fetch(ctx, a.Sender.CLI, t, &lookup.Selection{})
		if err != nil {
			return nil, err
		}
		object = &now[0]
	}
}
