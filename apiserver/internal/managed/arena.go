package managed

// arena is where the trees of one comparison are made: they are gone when it is
// over, and a pod has a hundred nodes. It makes them by the block, and knows by
// heart the names that come again and again. A nil arena makes each by itself.
type arena struct {
	blocks [][]fields
	used   int
	names  map[string]string // "name": "f:name"
}

const (
	arenaBlock    = 64
	arenaMaxKept  = 64   // blocks, between comparisons
	arenaMaxNames = 1024 // some are users' own
)

// node returns a new node.
func (a *arena) node(element string) *fields {
	if a == nil {
		return &fields{element: element}
	}
	if a.used == len(a.blocks)*arenaBlock {
		a.blocks = append(a.blocks, make([]fields, arenaBlock))
	}
	n := &a.blocks[a.used/arenaBlock][a.used%arenaBlock]
	a.used++
	n.element, n.arena = element, a
	return n
}

// reset takes all nodes back.
func (a *arena) reset() {
	for _, block := range a.blocks {
		clear(block[:min(arenaBlock, a.used)])
		a.used -= min(arenaBlock, a.used)
	}
	if len(a.blocks) > arenaMaxKept {
		a.blocks = a.blocks[:arenaMaxKept:arenaMaxKept]
	}
}

// field is the path element of a field.
func (a *arena) field(name []byte) string {
	if a == nil {
		return "f:" + string(name)
	}
	if known, ok := a.names[string(name)]; ok {
		return known
	}
	if a.names == nil || len(a.names) == arenaMaxNames {
		a.names = map[string]string{}
	}
	element := "f:" + string(name)
	a.names[element[len("f:"):]] = element
	return element
}
