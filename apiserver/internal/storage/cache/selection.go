package cache

import (
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"kctl/apiserver/internal/storage/raw"
)

// Selection selects entries. The zero Selection selects all.
type Selection struct {
	// Prefix narrows the cache's prefix to one namespace: "/registry/pods/default/".
	Prefix string
	Labels labels.Selector // nil for all
	Fields fields.Selector // nil for all
	many   []manyValues    // requirements of labels that are not in Labels
}

// onlyKey returns the only key that can match, if the fields name one.
func (c *Cache) onlyKey(s Selection) (key string, ok bool) {
	if s.Fields == nil {
		return "", false
	}
	name, ok := s.Fields.RequiresExactMatch("metadata.name")
	if !ok {
		return "", false
	}
	if c.options.Namespaced && s.Prefix == c.options.Prefix {
		namespace, ok := s.Fields.RequiresExactMatch("metadata.namespace")
		return s.Prefix + namespace + "/" + name, ok
	}
	return s.Prefix + name, true
}

func (s Selection) everything() bool {
	return (s.Labels == nil || s.Labels.Empty()) && len(s.many) == 0 && (s.Fields == nil || s.Fields.Empty())
}

// matches reports whether e is selected. Its key is known to have the prefix.
func (c *Cache) matches(s Selection, e *Entry) bool {
	if s.everything() {
		return true
	}
	index := c.indexOf(e)
	if index.err != nil {
		return false
	}
	if s.Labels != nil && !s.Labels.Matches(index.labels) {
		return false
	}
	for i := range s.many {
		if !s.many[i].matches(index.labels) {
			return false
		}
	}
	return s.Fields == nil || s.Fields.Matches(selectable{c, e})
}

// indexOf returns labels and fields of e, which it finds once.
func (c *Cache) indexOf(e *Entry) *index {
	if found := e.index.Load(); found != nil {
		return found
	}
	labelled, err := raw.Labels(e.Value)
	made := &index{labels: pairsOf(labelled), err: err}
	if c.options.Fields != nil && made.err == nil {
		var found fields.Set
		found, made.err = c.options.Fields(e.Value)
		made.fields = pairsOf(found)
	}
	if made.err != nil {
		c.options.Logger.Error("object cannot be selected", zap.String("key", e.Key), zap.Error(made.err))
	}
	e.index.Store(made)
	return made
}

// selectable shows an entry to selectors, without a map for the names that
// every object has.
type selectable struct {
	cache *Cache
	entry *Entry
}

func (s selectable) Has(field string) bool {
	return field == "metadata.name" || field == "metadata.namespace" || s.cache.indexOf(s.entry).fields.Has(field)
}

func (s selectable) Get(field string) string {
	switch field {
	case "metadata.name":
		return s.entry.name
	case "metadata.namespace":
		return s.entry.namespace
	}
	return s.cache.indexOf(s.entry).fields.Get(field)
}
