package printer

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Name prints type.group/name, and what was done to it unless Short.
type Name struct {
	Operation string // "created", "configured", …
	Short     bool
}

// Print writes one line an object.
func (n *Name) Print(w io.Writer, obj runtime.Object) error {
	if list, ok := obj.(*unstructured.UnstructuredList); ok {
		for i := range list.Items {
			if err := n.Print(w, &list.Items[i]); err != nil {
				return err
			}
		}
		return nil
	}
	if event, ok := obj.(*Event); ok {
		return n.Print(w, event.Object)
	}
	name := "<unknown>" // of what has none, or none yet
	if accessor, err := meta.Accessor(obj); err == nil {
		name = cmp.Or(accessor.GetName(), name)
	}
	line := ObjectName(obj.GetObjectKind().GroupVersionKind(), name)
	if n.Operation != "" && !n.Short {
		line += " " + n.Operation
	}
	_, err := fmt.Fprintln(w, line)
	return err
}

// ObjectName is type.group/name, as users type it, fit for a terminal: the names of roles
// and their bindings may be almost anything.
func ObjectName(kind schema.GroupVersionKind, name string) string {
	singular := strings.ToLower(kind.Kind)
	if kind.Group != "" {
		singular += "." + kind.Group
	}
	return Visible(singular + "/" + name)
}

// ResourceName is RESOURCE.GROUP/SUBRESOURCE.
func ResourceName(resource, group string) string {
	if group == "" {
		return resource
	}
	base, sub, hasSub := strings.Cut(resource, "/")
	if hasSub {
		sub = "/" + sub
	}
	return base + "." + group + sub
}
