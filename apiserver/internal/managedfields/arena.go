package managedfields

// arena allocates the trees of one comparison, which are short-lived and have a
// hundred nodes for a pod. It allocates in blocks, and caches frequent names. A
// nil arena allocates each node by itself.
type arena struct {
	blocks [][]fieldSet
	used   int
	names  map[string]string // "name": "f:name"
	// room is where short lists of children are allocated.
	room     []*fieldSet
	roomUsed int
}

const (
	arenaBlock    = 64
	arenaMaxKept  = 64   // blocks, between comparisons
	arenaMaxNames = 1024 // users choose some of them
	arenaRoom     = 512
)

// node returns a new node.
func (a *arena) node(element string) *fieldSet {
	if a == nil {
		return &fieldSet{element: element}
	}
	if a.used == len(a.blocks)*arenaBlock {
		a.blocks = append(a.blocks, make([]fieldSet, arenaBlock))
	}
	n := &a.blocks[a.used/arenaBlock][a.used%arenaBlock]
	a.used++
	n.element, n.arena = element, a
	return n
}

// children returns an empty list with room for n.
func (a *arena) children(n int) []*fieldSet {
	if a.room == nil {
		a.room = make([]*fieldSet, arenaRoom)
	}
	if a.roomUsed+n > len(a.room) {
		return make([]*fieldSet, 0, n)
	}
	from := a.roomUsed
	a.roomUsed += n
	return a.room[from:from:a.roomUsed]
}

// reset takes all nodes back.
func (a *arena) reset() {
	clear(a.room[:a.roomUsed])
	a.roomUsed = 0
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
	return a.named(string(name))
}

// named is field for a name that is already a string.
func (a *arena) named(name string) string {
	if known, ok := a.names[name]; ok {
		return known
	}
	if a.names == nil || len(a.names) == arenaMaxNames {
		a.names = map[string]string{}
	}
	element := "f:" + name
	a.names[element[len("f:"):]] = element
	return element
}
