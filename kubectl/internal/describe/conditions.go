package describe

// conditions writes a table of an object's conditions, if it has any: the lines
// of its head, which differ between kinds, and a row for each.
func conditions[T any](p *page, all []T, head []string, row func(T) string) {
	if len(all) == 0 {
		return
	}
	p.head("Conditions")
	p.under(func() {
		for _, line := range head {
			p.text("%s", line)
		}
		for _, each := range all {
			p.text("%s", row(each))
		}
	})
}
