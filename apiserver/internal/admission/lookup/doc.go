// Package lookup finds the objects that admission plugins decide by. It reads
// the cache first, because every create needs its namespace and its service
// account, and the store itself only if the cache lacks the object.
//
// Plugins call it. The objects it returns are shared and must not be changed.
package lookup
