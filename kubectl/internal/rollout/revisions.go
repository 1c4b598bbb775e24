package rollout

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"kctl/kubectl/internal/describe"
	"kctl/kubectl/internal/threeway"
)

// ChangeCause is the annotation that says why an object was changed last.
const ChangeCause = "kubernetes.io/change-cause"

// Revision is a template that an object had, or has.
type Revision struct {
	Number  int64
	Cause   string
	Current bool // the object has this template now
	// Patch brings the template back: a strategic merge patch, or, with Replace,
	// a JSON patch.
	Patch   []byte
	Replace bool
	// Object is what the revision looks like whole: the replica set that keeps it,
	// or the owner with its template.
	Object *unstructured.Unstructured

	template map[string]any
}

// Keeper is the resource that stores the revisions of a kind.
func Keeper(kind string) (resource string, ok bool) {
	switch kind {
	case "Deployment":
		return "replicasets.apps", true
	case "DaemonSet", "StatefulSet":
		return "controllerrevisions.apps", true
	}
	return "", false
}

// Revisions are those of the stored objects that belong to the owner, oldest first.
func Revisions(owner *unstructured.Unstructured, kept []unstructured.Unstructured) ([]Revision, error) {
	var all []Revision
	for i := range kept {
		if !metav1.IsControlledBy(&kept[i], owner) {
			continue
		}
		read := fromControllerRevision
		if owner.GetKind() == "Deployment" {
			read = fromReplicaSet
		}
		revision, err := read(owner, &kept[i])
		if err != nil {
			return nil, err
		}
		if cause, ok := kept[i].GetAnnotations()[ChangeCause]; ok {
			revision.Cause = cause
		}
		all = append(all, revision)
	}
	slices.SortStableFunc(all, func(a, b Revision) int { return cmp.Compare(a.Number, b.Number) })
	return all, nil
}

func fromReplicaSet(owner, set *unstructured.Unstructured) (Revision, error) {
	number, err := strconv.ParseInt(set.GetAnnotations()[revisionAnnotation], 10, 64)
	if err != nil {
		number = 0 // not counted yet
	}
	template, _, err := unstructured.NestedMap(set.Object, "spec", "template")
	if err != nil {
		return Revision{}, fmt.Errorf("decode replica set %s: %w", set.GetName(), err)
	}
	now, _, err := unstructured.NestedMap(owner.Object, "spec", "template")
	if err != nil {
		return Revision{}, fmt.Errorf("decode %s: %w", owner.GetName(), err)
	}
	back := (&unstructured.Unstructured{Object: template}).DeepCopy().Object
	unstructured.RemoveNestedField(back, "metadata", "labels", appsv1.DefaultDeploymentUniqueLabelKey)
	patch, err := json.Marshal([]map[string]any{
		{"op": "replace", "path": "/spec/template", "value": back}, {"op": "add", "path": "/metadata/annotations",
			"value": annotationsThen(owner, set)},
	})
	if err != nil {
		return Revision{}, fmt.Errorf("encoding the template: %w", err)
	}
	cause, _, _ := unstructured.NestedString(template, "metadata", "annotations", ChangeCause) // what counts if the set says none
	return Revision{
		Number:   number,
		Cause:    cause,
		Patch:    patch,
		Replace:  true,
		Object:   set,
		Current:  reflect.DeepEqual(back, now),
		template: template,
	}, nil
}

// ofNow are the annotations that a deployment has whichever its template is: the others it
// has in common with the replica set of its template.
var ofNow = []string{
	threeway.LastApplied, revisionAnnotation, "deployment.kubernetes.io/revision-history",
	"deployment.kubernetes.io/desired-replicas", "deployment.kubernetes.io/max-replicas", "deprecated.deployment.rollback.to",
}

// annotationsThen are those that a deployment had with the template of the replica set,
// such as why somebody changed it.
func annotationsThen(owner, set *unstructured.Unstructured) map[string]string {
	then := map[string]string{} // somebody else's replica set may have none
	maps.Copy(then, set.GetAnnotations())
	for _, name := range ofNow {
		delete(then, name)
		if value, ok := owner.GetAnnotations()[name]; ok {
			then[name] = value
		}
	}
	return then
}

func fromControllerRevision(owner, kept *unstructured.Unstructured) (Revision, error) {
	number, _, err := unstructured.NestedInt64(kept.Object, "revision")
	if err != nil {
		return Revision{}, fmt.Errorf("decode controller revision %s: %w", kept.GetName(), err)
	}
	data, _, err := unstructured.NestedMap(kept.Object, "data")
	if err != nil {
		return Revision{}, fmt.Errorf("decode controller revision %s: %w", kept.GetName(), err)
	}
	patch, err := json.Marshal(data)
	if err != nil {
		return Revision{}, fmt.Errorf("encoding the template: %w", err)
	}
	template, _, err := unstructured.NestedMap(data, "spec", "template")
	if err != nil {
		return Revision{}, fmt.Errorf("decode controller revision %s: %w", kept.GetName(), err)
	}
	now, _, err := unstructured.NestedMap(owner.Object, "spec", "template")
	if err != nil {
		return Revision{}, fmt.Errorf("decode %s: %w", owner.GetName(), err)
	}
	delete(template, "$patch") // the directive that makes the template a replacing patch
	whole := owner.DeepCopy()
	if err := unstructured.SetNestedMap(whole.Object, template, "spec", "template"); err != nil {
		return Revision{}, fmt.Errorf("restoring controller revision %s: %w", kept.GetName(), err)
	}
	return Revision{Number: number, Patch: patch, Object: whole, Current: reflect.DeepEqual(template, now), template: template}, nil
}

// Choose finds the revision to go back to: the one named, or else the one
// before the newest.
func Choose(kind, name string, revisions []Revision, to int64) (Revision, error) {
	if to != 0 {
		for _, revision := range revisions {
			if revision.Number == to {
				return revision, nil
			}
		}
		return Revision{}, fmt.Errorf("unable to find specified revision %v in history", to)
	}
	if len(revisions) < 2 {
		if kind == "Deployment" {
			return Revision{}, fmt.Errorf("no rollout history found for deployment %q", name)
		}
		return Revision{}, errors.New("no last revision to roll back to")
	}
	return revisions[len(revisions)-2], nil
}

// PrintTemplate writes a revision's pod template, and why somebody made it.
func PrintTemplate(w io.Writer, revision Revision) error {
	template, err := revision.podTemplate()
	if err != nil {
		return err
	}
	if template.Annotations == nil && revision.Cause != "" {
		template.Annotations = map[string]string{}
	}
	if revision.Cause != "" {
		template.Annotations[ChangeCause] = revision.Cause
	}
	return describe.PodTemplate(w, template)
}

// Preview is the pod template that an undo would bring back, in kubectl's words for what
// it does to an object of the kind.
func Preview(kind string, revision Revision) (string, error) {
	template, err := revision.podTemplate()
	if err != nil {
		return "", err
	}
	var text strings.Builder
	if kind != "Deployment" {
		text.WriteString("will roll back to ")
	}
	err = describe.PodTemplate(&text, template)
	return text.String(), err
}

func (r Revision) podTemplate() (*corev1.PodTemplateSpec, error) {
	template := &corev1.PodTemplateSpec{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(r.template, template); err != nil {
		return nil, fmt.Errorf("decode the template: %w", err)
	}
	return template, nil
}
