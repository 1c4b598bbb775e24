package printer

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/duration"
)

// Table prints the tables that a server makes of its objects, one after the
// other, in common columns. The headers are printed once, unless the columns
// change.
type Table struct {
	Wide          bool
	NoHeaders     bool
	WithNamespace bool     // a column before the others
	WithEvent     bool     // a column with the kind of watch event
	ShowLabels    bool     // a column behind the others
	LabelColumns  []string // columns of single labels
	KindPrefix    string   // "pod/" before each name, where types are mixed

	headers []metav1.TableColumnDefinition
	out     Columns
}

// Add adds the rows of a table. event is the kind of watch event they come
// from, if any.
func (t *Table) Add(table *metav1.Table, event string) error {
	if len(table.ColumnDefinitions) > 0 && !sameColumns(t.headers, table.ColumnDefinitions) {
		if t.headers != nil {
			t.out = Columns{}
		}
		t.headers = table.ColumnDefinitions
		if !t.NoHeaders {
			t.out.Add(t.headerCells()...)
		}
	}
	for i := range table.Rows {
		row, err := t.rowCells(&table.Rows[i], event)
		if err != nil {
			return err
		}
		t.out.Add(row...)
	}
	return nil
}

// Flush writes the rows added since the last Flush.
func (t *Table) Flush(w io.Writer) error { return t.out.Flush(w) }

func sameColumns(a, b []metav1.TableColumnDefinition) bool {
	return slices.EqualFunc(a, b, func(x, y metav1.TableColumnDefinition) bool { return x.Name == y.Name && x.Priority == y.Priority })
}

// PlainTable is a table of names and ages, for objects whose server makes no
// tables.
func PlainTable(list *unstructured.UnstructuredList, now time.Time) (*metav1.Table, error) {
	table := &metav1.Table{ColumnDefinitions: []metav1.TableColumnDefinition{{Name: "Name"}, {Name: "Age"}}}
	table.ResourceVersion = list.GetResourceVersion()
	for i := range list.Items {
		raw, err := list.Items[i].MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("encoding an object for its row: %w", err)
		}
		age := "<unknown>"
		if created := list.Items[i].GetCreationTimestamp(); !created.IsZero() {
			age = duration.HumanDuration(now.Sub(created.Time))
		}
		row := metav1.TableRow{Cells: []any{list.Items[i].GetName(), age}}
		row.Object.Raw = raw
		table.Rows = append(table.Rows, row)
	}
	return table, nil
}

func (t *Table) shown(i int) bool {
	return i >= len(t.headers) || t.Wide || t.headers[i].Priority == 0
}

func (t *Table) headerCells() []string {
	var cells []string
	if t.WithEvent {
		cells = append(cells, eventCell("EVENT"))
	}
	if t.WithNamespace {
		cells = append(cells, "NAMESPACE")
	}
	for i, column := range t.headers {
		if t.shown(i) {
			cells = append(cells, strings.ToUpper(column.Name))
		}
	}
	for _, label := range t.LabelColumns {
		cells = append(cells, strings.ToUpper(label[strings.LastIndexByte(label, '/')+1:]))
	}
	if t.ShowLabels {
		cells = append(cells, "LABELS")
	}
	return cells
}

// eventCell is of one width for all events, so that those to come align.
func eventCell(event string) string { return fmt.Sprintf("%-8s", event) }

func (t *Table) rowCells(row *metav1.TableRow, event string) ([]string, error) {
	meta, err := rowMeta(row)
	if err != nil {
		return nil, err
	}
	var cells []string
	if t.WithEvent {
		cells = append(cells, eventCell(event))
	}
	if t.WithNamespace {
		cells = append(cells, meta.Namespace)
	}
	for i, value := range row.Cells {
		if !t.shown(i) {
			continue
		}
		text := cell(value)
		if i == 0 && t.KindPrefix != "" {
			text = t.KindPrefix + text
		}
		cells = append(cells, text)
	}
	for _, label := range t.LabelColumns {
		cells = append(cells, meta.Labels[label])
	}
	if t.ShowLabels {
		cells = append(cells, labels.FormatLabels(meta.Labels))
	}
	return cells, nil
}

// rowMeta reads the metadata of the object behind a row.
func rowMeta(row *metav1.TableRow) (*metav1.ObjectMeta, error) {
	object := &metav1.PartialObjectMetadata{}
	if len(row.Object.Raw) == 0 {
		return &object.ObjectMeta, nil
	}
	if err := json.Unmarshal(row.Object.Raw, object); err != nil {
		return nil, fmt.Errorf("decoding the object of a table's row: %w", err)
	}
	return &object.ObjectMeta, nil
}

// cell is a value on one line, without anything that would move a terminal's
// cursor.
func cell(value any) string {
	var text string
	switch v := value.(type) {
	case nil:
		text = "" // of a custom resource without that field
	case string:
		text = v
	case float64:
		text = strconv.FormatFloat(v, 'f', -1, 64)
	default:
		text = fmt.Sprint(v)
	}
	if end := strings.IndexAny(text, "\f\n\r"); end >= 0 {
		text = text[:end] + "..."
	}
	return Visible(strings.ReplaceAll(text, "\t", " "))
}

// SortTable sorts the rows of a table by a field of the objects behind them,
// which the server must have been asked to include.
func SortTable(table *metav1.Table, path string) error {
	objects := make([]unstructured.Unstructured, len(table.Rows))
	for i := range table.Rows {
		if err := json.Unmarshal(table.Rows[i].Object.Raw, &objects[i].Object); err != nil {
			return fmt.Errorf("decoding the object of a table's row: %w", err)
		}
	}
	order, _, err := sortedOrder(objects, path)
	if err != nil {
		return err
	}
	rows := make([]metav1.TableRow, len(order))
	for to, from := range order {
		rows[to] = table.Rows[from]
	}
	table.Rows = rows
	return nil
}
