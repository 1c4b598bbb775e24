package cache

// pairs are names with their values: what selectors look at. An object has a
// few, and thousands of objects are kept; a slice takes a third of a map's
// memory, and is searched as fast.
type pairs []string // name, value, name, value, …

func pairsOf(m map[string]string) pairs {
	if len(m) == 0 {
		return nil
	}
	p := make(pairs, 0, 2*len(m))
	for name, value := range m {
		p = append(p, name, value)
	}
	return p
}

// Lookup implements labels.Labels.
func (p pairs) Lookup(name string) (value string, exists bool) {
	for i := 0; i < len(p); i += 2 {
		if p[i] == name {
			return p[i+1], true
		}
	}
	return "", false
}

// Has implements labels.Labels and fields.Fields.
func (p pairs) Has(name string) bool {
	_, exists := p.Lookup(name)
	return exists
}

// Get implements labels.Labels and fields.Fields.
func (p pairs) Get(name string) string {
	value, _ := p.Lookup(name)
	return value
}
