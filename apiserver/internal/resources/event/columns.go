package event

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/resources/cell"
	"kctl/proto/core"
)

func columns() []metav1.TableColumnDefinition {
	doc := core.Event{}.SwaggerDoc()
	count := cell.Wide("Count", doc["count"])
	count.Type = "string"
	name := cell.Name()
	name.Priority = 1
	return []metav1.TableColumnDefinition{
		cell.Text("Last Seen", doc["lastTimestamp"]),
		cell.Text("Type", doc["type"]),
		cell.Text("Reason", doc["reason"]),
		cell.Text("Object", doc["involvedObject"]),
		cell.Wide("Subobject", corev1.ObjectReference{}.SwaggerDoc()["fieldPath"]),
		cell.Wide("Source", doc["source"]),
		cell.Text("Message", doc["message"]),
		cell.Wide("First Seen", doc["firstTimestamp"]),
		count,
		name,
	}
}

func row(e *core.Event, now time.Time) []any {
	first := age(now, e.FirstTimestamp.Time)
	if e.FirstTimestamp.IsZero() {
		first = age(now, e.EventTime.Time)
	}
	last, count := age(now, e.LastTimestamp.Time), e.Count
	switch {
	case e.Series != nil:
		last, count = age(now, e.Series.LastObservedTime.Time), e.Series.Count
	case e.LastTimestamp.IsZero():
		last = first
		if count == 0 {
			count = 1 // an event of the newer form, seen once
		}
	}
	return []any{
		last, e.Type, e.Reason, object(&e.InvolvedObject), e.InvolvedObject.FieldPath, source(e),
		strings.TrimSpace(e.Message), first, int64(count), e.Name,
	}
}

func age(now, t time.Time) string { return cell.Age(now, metav1.NewTime(t)) }

func object(ref *core.ObjectReference) string {
	name := strings.ToLower(ref.Kind)
	if ref.Name != "" {
		name += "/" + ref.Name
	}
	return name
}

func source(e *core.Event) string {
	component, host := e.Source.Component, e.Source.Host
	if component == "" {
		component, host = e.ReportingController, e.ReportingInstance
	}
	if host == "" {
		return component
	}
	return component + ", " + host
}
