package customresources

import (
	"encoding/json"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"kctl/apiserver/internal/jsonpath"
)

// columns print objects as the definition says.
type columns struct {
	definitions []metav1.TableColumnDefinition
	paths       []*jsonpath.Path
	types       []string
}

const nameText = "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a " +
	"client to request the generation of an appropriate name automatically. Name is primarily intended for creation idempotence and " +
	"configuration definition. Cannot be updated. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names"

// newColumns compiles the columns; without any, they are name and age. As in
// upstream, they end before an invalid path, and the objects can still be
// listed.
func newColumns(wanted []apiextensionsv1.CustomResourceColumnDefinition) *columns {
	c := &columns{definitions: []metav1.TableColumnDefinition{{Name: "Name", Type: "string", Format: "name", Description: nameText}}}
	if len(wanted) == 0 {
		wanted = []apiextensionsv1.CustomResourceColumnDefinition{{
			Name: "Age", Type: "date", JSONPath: ".metadata.creationTimestamp", Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"],
		}}
	}
	for i := range wanted {
		w := &wanted[i]
		path, err := jsonpath.Compile(w.JSONPath)
		if err != nil {
			break
		}
		text := w.Description
		if text == "" {
			text = "Custom resource definition column (in JSONPath format): " + w.JSONPath
		}
		c.definitions = append(c.definitions, metav1.TableColumnDefinition{
			Name: w.Name, Type: w.Type, Format: w.Format, Description: text, Priority: w.Priority,
		})
		c.paths, c.types = append(c.paths, path), append(c.types, w.Type)
	}
	return c
}

func (c *columns) row(o *object, now time.Time) []any {
	cells := []any{o.GetName()}
	for i, path := range c.paths {
		found := path.Find(o.Object)
		if len(found) == 0 {
			cells = append(cells, nil)
			continue
		}
		cells = append(cells, cell(c.types[i], found[0], now))
	}
	return cells
}

// cell is a value in its column's form, nil if it is of another type.
func cell(kind string, value any, now time.Time) any {
	switch kind {
	case "integer":
		switch v := value.(type) {
		case int64:
			return v
		case float64:
			return int64(v)
		}
		return nil
	case "number":
		switch v := value.(type) {
		case int64:
			return float64(v)
		case float64:
			return v
		}
		return nil
	case "boolean":
		if v, ok := value.(bool); ok {
			return v
		}
		return nil
	case "date":
		text, _ := value.(string)
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return "<invalid>"
		}
		return duration.HumanDuration(now.Sub(at))
	}
	switch v := value.(type) {
	case string:
		return v
	case nil:
		return nil
	case map[string]any, []any:
		text, err := json.Marshal(v)
		if err != nil {
			return nil
		}
		return string(text)
	}
	return fmt.Sprint(value)
}
