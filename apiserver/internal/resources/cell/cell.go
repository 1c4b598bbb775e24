// Package cell makes the cells of the tables that `kubectl get` shows, in the
// words and units that upstream's tables use.
//
// The resources' Row functions call it. It never looks at an object's kind.
package cell

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
)

// Unknown stands where a time is not set.
const Unknown = "<unknown>"

// None stands where a value is empty.
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

// CreatedAtColumn is the column that tells when, and not how long ago.
func CreatedAtColumn() metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{Name: "Created At", Type: "date", Description: metadata["creationTimestamp"]}
}

// Text is a column that is always shown.
func Text(name, description string) metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{Name: name, Type: "string", Description: description}
}

// Wide is a column that only `-o wide` shows.
func Wide(name, description string) metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{Name: name, Type: "string", Priority: 1, Description: description}
}

// Age says how long ago t was.
func Age(now time.Time, t metav1.Time) string {
	if t.IsZero() {
		return Unknown
	}
	return duration.HumanDuration(now.Sub(t.Time))
}

// OrNone is s, or <none> where s is empty.
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
