// Package cell makes the cells of the tables that `kubectl get` shows, in the
// words and units of upstream's tables.
//
// The resources' Row functions call it. It never looks at an object's kind.
package cell

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"
)

// unknown is shown if a time is not set.
const unknown = "<unknown>"

// None is shown if a value is empty.
const None = "<none>"

var metadata = metav1.ObjectMeta{}.SwaggerDoc()

// Name is the first column of every table.
func Name() metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{Name: "Name", Type: "string", Format: "name", Description: metadata["name"]}
}

// AgeColumn is the column that Age fills.
func AgeColumn() metav1.TableColumnDefinition {
	return Text("Age", metadata["creationTimestamp"])
}

// CreatedAtColumn is the column with the creation time rather than the age.
func CreatedAtColumn() metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{Name: "Created At", Type: "date", Description: metadata["creationTimestamp"]}
}

// Text is a text column that is always shown.
func Text(name, description string) metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{Name: name, Type: "string", Description: description}
}

// Wide is a text column that only `-o wide` shows.
func Wide(name, description string) metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{Name: name, Type: "string", Priority: 1, Description: description}
}

// template describes columns about a pod template.
var template = map[string]string{
	"Containers": "Names of each container in the template.",
	"Images":     "Images referenced by each container in the template.",
}

// Columns makes columns from their names, in the order of the cells. A type
// other than string follows a colon, a star marks columns that only `-o wide`
// shows, and an equals sign precedes the field that the column shows, whose
// description in doc it gets: "Desired:integer=replicas", "Containers*". Name
// and Age are the standard columns.
func Columns(doc map[string]string, names ...string) []metav1.TableColumnDefinition {
	columns := make([]metav1.TableColumnDefinition, len(names))
	for i, name := range names {
		name, field, _ := strings.Cut(name, "=")
		column := metav1.TableColumnDefinition{Type: "string", Description: doc[field]}
		if wide, ok := strings.CutSuffix(name, "*"); ok {
			name, column.Priority = wide, 1
		}
		if before, kind, ok := strings.Cut(name, ":"); ok {
			name, column.Type = before, kind
		}
		column.Name = name
		switch {
		case name == "Name":
			column = Name()
		case name == "Age":
			column = AgeColumn()
		case field == "":
			column.Description = cmp.Or(template[name], name)
		case column.Description == "":
			column.Description = name
		}
		columns[i] = column
	}
	return columns
}

// Describe replaces the descriptions of columns, by name: with those of fields
// elsewhere, or upstream's descriptions of columns that show no field.
func Describe(columns []metav1.TableColumnDefinition, texts map[string]string) []metav1.TableColumnDefinition {
	for i := range columns {
		if text, ok := texts[columns[i].Name]; ok {
			columns[i].Description = text
		}
	}
	return columns
}

// ScaleColumns are those of Scales of built-in kinds.
func ScaleColumns() []metav1.TableColumnDefinition {
	return []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Description: metadata["name"]},
		{Name: "Desired", Type: "integer", Description: autoscalingv1.ScaleSpec{}.SwaggerDoc()["replicas"]},
		{Name: "Available", Type: "integer", Description: autoscalingv1.ScaleStatus{}.SwaggerDoc()["replicas"]},
		AgeColumn(),
	}
}

// CustomScaleColumns are those of Scales of custom resources, for which
// upstream has other descriptions and types.
func CustomScaleColumns() []metav1.TableColumnDefinition {
	columns := Describe(ScaleColumns(), map[string]string{"Desired": "Number of desired replicas", "Available": "Number of actual replicas"})
	columns[0], columns[3].Type = Name(), "date"
	return columns
}

// ScaleRow is the row for ScaleColumns.
func ScaleRow(scale *autoscalingv1.Scale, now time.Time) []any {
	return []any{scale.Name, int64(scale.Spec.Replicas), int64(scale.Status.Replicas), Age(now, scale.CreationTimestamp)}
}

// Containers are the names and the images of containers, each in one cell.
func Containers(containers []corev1.Container) (names, images string) {
	n, i := make([]string, len(containers)), make([]string, len(containers))
	for at := range containers {
		n[at], i[at] = containers[at].Name, containers[at].Image
	}
	return strings.Join(n, ","), strings.Join(i, ",")
}

// Age is how long ago t was.
func Age(now time.Time, t metav1.Time) string {
	if t.IsZero() {
		return unknown
	}
	return duration.HumanDuration(now.Sub(t.Time))
}

// OrNone is s, or <none> if s is empty.
func OrNone(s string) string {
	if s == "" {
		return None
	}
	return s
}

// Joined is a list in one cell: at most max items, then how many more there are.
func Joined(items []string, max int) string {
	if max <= 0 || len(items) <= max {
		return strings.Join(items, ",")
	}
	return fmt.Sprintf("%s + %d more...", strings.Join(items[:max], ","), len(items)-max)
}

// Reference names an object of some kind: "deployment.apps/web".
func Reference(kind schema.GroupKind, name string) string {
	if kind.Kind == "" {
		return name
	}
	text := strings.ToLower(kind.Kind)
	if kind.Group != "" {
		text += "." + kind.Group
	}
	return text + "/" + name
}

// Selector is a label selector, or <none> if there is none.
func Selector(s *metav1.LabelSelector) string {
	if s == nil {
		return None
	}
	return metav1.FormatLabelSelector(s)
}

// Bool is true or false as tables write them, <unset> if it is nil.
func Bool(b *bool) string {
	switch {
	case b == nil:
		return "<unset>"
	case *b:
		return "True"
	}
	return "False"
}

// NameAndTime are the columns of kinds without a table of their own.
func NameAndTime() []metav1.TableColumnDefinition {
	return []metav1.TableColumnDefinition{
		Name(), {Name: "Created At", Type: "date", Description: metadata["creationTimestamp"]},
	}
}

// NameAndTimeRow is the row for NameAndTime.
func NameAndTimeRow(m *metav1.ObjectMeta) []any {
	return []any{m.Name, m.CreationTimestamp.UTC().Format(time.RFC3339)}
}
