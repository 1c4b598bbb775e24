package printer

import (
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/jsonpath"
)

// customColumns prints a table of the user's own columns, HEADER:PATH,….
type customColumns struct {
	headers []string
	paths   []*jsonpath.JSONPath
	out     *Columns
}

func columnsFromSpec(spec string, o Options) (Printer, error) {
	c := &customColumns{out: &Columns{}}
	for column := range strings.SplitSeq(spec, ",") {
		header, path, ok := strings.Cut(column, ":")
		if !ok {
			return nil, fmt.Errorf("unexpected custom-columns spec: %s, expected <header>:<json-path-expr>", column)
		}
		if err := c.add(header, path); err != nil {
			return nil, err
		}
	}
	c.start(o)
	return c, nil
}

// columnsFromFile reads the headers from the first line and the paths from the
// second, both separated by white space.
func columnsFromFile(text string, o Options) (Printer, error) {
	headers, paths, _ := strings.Cut(strings.TrimSpace(text), "\n")
	h, p := strings.Fields(headers), strings.Fields(paths)
	if len(h) == 0 || len(h) != len(p) {
		return nil, fmt.Errorf("custom-columns-file: %d headers in the first line and %d paths in the second", len(h), len(p))
	}
	c := &customColumns{out: &Columns{}}
	for i := range h {
		if err := c.add(h[i], p[i]); err != nil {
			return nil, err
		}
	}
	c.start(o)
	return c, nil
}

// add adds a column. One without a path is an empty one.
func (c *customColumns) add(header, path string) error {
	var p *jsonpath.JSONPath
	if path != "" {
		var err error
		if p, err = RelaxedPath(path); err != nil {
			return err
		}
	}
	c.headers, c.paths = append(c.headers, header), append(c.paths, p)
	return nil
}

func (c *customColumns) start(o Options) {
	if !o.NoHeaders {
		c.out.Add(c.headers...)
	}
}

// Print writes a row an object; the headers come before the first.
func (c *customColumns) Print(w io.Writer, obj runtime.Object) error {
	items := []unstructured.Unstructured{}
	if list, ok := obj.(*unstructured.UnstructuredList); ok {
		items = list.Items
	} else {
		content, err := contentOf(obj)
		if err != nil {
			return err
		}
		items = append(items, unstructured.Unstructured{Object: content})
	}
	for i := range items {
		row, err := c.row(items[i].Object)
		if err != nil {
			return err
		}
		c.out.Add(row...)
	}
	return c.out.Flush(w)
}

func (c *customColumns) row(content map[string]any) ([]string, error) {
	row := make([]string, len(c.paths))
	for i, path := range c.paths {
		row[i] = "<none>"
		if path == nil {
			continue
		}
		results, err := path.FindResults(content)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", c.headers[i], err)
		}
		var values []string
		if len(results) > 0 {
			for _, value := range results[0] {
				values = append(values, fmt.Sprint(value.Interface()))
			}
		}
		if len(values) > 0 {
			row[i] = strings.Join(values, ",")
		}
	}
	return row, nil
}
