package managedfields

import (
	"errors"
)

// document is JSON text parsed only as far as comparing needs: each value is a
// piece of the text, and objects and lists know their members.
type document struct {
	text  []byte
	nodes []node
}

// node is one value of a document.
type node struct {
	kind       byte // '{', '[', '"', 'n' for null, or '0' for the other scalars
	name       span // of a member of an object, without quotes
	raw        span // the whole value
	first      int32
	next       int32 // sibling; 0 for none, as the root is no one's sibling
	escapeName bool
}

type span struct{ from, to int32 }

func (d *document) bytes(s span) []byte { return d.text[s.from:s.to] }

// none is no node.
const none int32 = -1

var errMalformed = errors.New("not JSON as it is encoded here")

// maxDepth is deeper than any real object.
const maxDepth = 256

// parse parses text. It is for JSON that this server or upstream encoded:
// errors that do not affect the structure may go unnoticed.
func (d *document) parse(text []byte) error {
	if len(text) > 1<<30 {
		return errMalformed
	}
	d.text, d.nodes = text, d.nodes[:0]
	p := parser{document: d}
	if _, err := p.value(span{}, false, 0); err != nil {
		return err
	}
	p.space()
	if int(p.at) != len(text) {
		return errMalformed
	}
	return nil
}

type parser struct {
	*document
	at int32
}

func (p *parser) space() {
	for int(p.at) < len(p.text) {
		switch p.text[p.at] {
		case ' ', '\t', '\n', '\r':
			p.at++
		default:
			return
		}
	}
}

func (p *parser) peek() byte {
	if int(p.at) < len(p.text) {
		return p.text[p.at]
	}
	return 0
}

func (p *parser) value(name span, escaped bool, depth int) (int32, error) {
	p.space()
	here := int32(len(p.nodes))
	p.nodes = append(p.nodes, node{name: name, escapeName: escaped, first: none})
	begin := p.at
	var err error
	kind := p.peek()
	switch {
	case kind == '{' || kind == '[':
		if depth == maxDepth {
			return 0, errMalformed
		}
		err = p.members(here, kind, depth)
	case kind == '"':
		_, _, err = p.quoted()
	default:
		kind, err = p.bare(kind)
	}
	p.nodes[here].kind = kind
	p.nodes[here].raw = span{begin, p.at}
	return here, err
}

// bare reads null, true, false or a number.
func (p *parser) bare(first byte) (byte, error) {
	begin := p.at
	for int(p.at) < len(p.text) {
		switch p.text[p.at] {
		case ',', '}', ']', ' ', '\t', '\n', '\r', '"', '{', '[', ':':
		default:
			p.at++
			continue
		}
		break
	}
	if p.at == begin {
		return 0, errMalformed
	}
	if first == 'n' {
		return 'n', nil
	}
	return '0', nil
}

// quoted reads a string and returns what is between its quotes.
func (p *parser) quoted() (inside span, escaped bool, err error) {
	p.at++
	begin := p.at
	for int(p.at) < len(p.text) {
		switch p.text[p.at] {
		case '\\':
			escaped = true
			p.at += 2
		case '"':
			p.at++
			return span{begin, p.at - 1}, escaped, nil
		default:
			p.at++
		}
	}
	return span{}, false, errMalformed
}

// members reads the members of an object or a list.
func (p *parser) members(parent int32, kind byte, depth int) error {
	end := byte('}')
	if kind == '[' {
		end = ']'
	}
	p.at++
	p.space()
	if p.peek() == end {
		p.at++
		return nil
	}
	last := none
	for {
		var name span
		var escaped bool
		var err error
		if kind == '{' {
			if name, escaped, err = p.memberName(); err != nil {
				return err
			}
		}
		child, err := p.value(name, escaped, depth+1)
		if err != nil {
			return err
		}
		if last == none {
			p.nodes[parent].first = child
		} else {
			p.nodes[last].next = child
		}
		last = child
		p.space()
		switch p.peek() {
		case ',':
			p.at++
		case end:
			p.at++
			return nil
		default:
			return errMalformed
		}
	}
}

func (p *parser) memberName() (name span, escaped bool, err error) {
	p.space()
	if p.peek() != '"' {
		return span{}, false, errMalformed
	}
	if name, escaped, err = p.quoted(); err != nil {
		return span{}, false, err
	}
	p.space()
	if p.peek() != ':' {
		return span{}, false, errMalformed
	}
	p.at++
	return name, escaped, nil
}

// after is the sibling after n, or none.
func (d *document) after(n int32) int32 {
	if next := d.nodes[n].next; next != 0 {
		return next
	}
	return none
}

// member finds an object's member by name. It starts at hint, where it usually
// is: the members of similar objects are in the same order.
func (d *document) member(object, hint int32, name []byte) int32 {
	for i := hint; i != none; i = d.after(i) {
		if string(d.bytes(d.nodes[i].name)) == string(name) {
			return i
		}
	}
	for i := d.nodes[object].first; i != none && i != hint; i = d.after(i) {
		if string(d.bytes(d.nodes[i].name)) == string(name) {
			return i
		}
	}
	return none
}
