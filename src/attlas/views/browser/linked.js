// Words and patches linked: what the maps say of a word and every patch.

// The chosen token, or the word that is pointed at.
/** @param {Placed[]} patches @param {TextPayload} payload @param {State} state */
function askedPositions(patches, payload, state) {
  if (state.row !== null) return [state.row];
  const own = new Set(patches.map(({positions: [position]}) => position));
  return litPositions(payload, state).filter((position) => !own.has(position) && !payload.tokens[position].special);
}

// A weight for each patch, where a map links them to the token; `key` tells one link from another.
/** @param {Placed[]} patches @param {TextPayload} payload @param {State} state @returns {PatchLink} */
function linkOf(patches, payload, state) {
  const none = {key: "", values: null, told: []};
  const sites = payload.maps?.sites ?? [], shows = visible(payload.maps?.shows ?? "");
  const asked = sites.length ? askedPositions(patches, payload, state) : [];
  if (!asked.length) return none;
  const chosen = sites[state.layer], ways = [...sites.keys()].reverse();
  const found = weightsAt(chosen, [state.head], asked, patches)
    ?? ways.map((layer) => weightsAt(sites[layer], [...sites[layer].limits.keys()], asked, patches)).find(Boolean);
  if (!found) return none;
  const word = asked.map((position) => visible(payload.tokens[position].label)).join(" ");
  const where = found.heads.length === 1 ? mapName(found.site, found.heads[0], sites)
    : `${layerName(found.site, sites)}, mean of its heads`;
  const which = found.turned ? `${shows} of each patch to it` : `${shows} here`;
  return {key: `${asked} ${where} ${found.turned}`, values: found.values, told: [word, `: ${which}, ${where}`]};
}

// The row of a token on the patches or, where patches attend to words, its column; null if the map has
// neither, or nothing but zeros, as one over the two towers of CLIP.
/** @param {MapSite} site @param {number[]} heads @param {number[]} asked @param {Placed[]} patches */
function weightsAt(site, heads, asked, patches) {
  const places = patches.map(({positions: [position]}) => position);
  /** @param {number[]} rows @param {number[]} columns @param {boolean} turned */
  const read = (rows, columns, turned) => {
    const at = new Map(columns.map((position, i) => /** @type {const} */ ([position, i])));
    const own = asked.map((position) => rows.indexOf(position)).filter((row) => row >= 0);
    if (!own.length || !places.some((position) => at.has(position))) return null;
    const tables = heads.map((head) => headOf(site, head));
    /** @param {number} row @param {number} column */
    const weight = (row, column) => tables.reduce((sum, table) =>
      sum + (turned ? table.value(column, row) : table.value(row, column)), 0) / tables.length;
    const values = places.map((position) => {
      const column = at.get(position);
      return column === undefined ? 0 : own.reduce((sum, row) => sum + weight(row, column), 0) / own.length;
    });
    return values.some(Boolean) ? {values, site, heads, turned} : null;
  };
  return read(site.queries, site.keys, false) ?? read(site.keys, site.queries, true);
}

// What pointing at a word does to the patches, if there are both.
/** @param {Placed[]} patches @param {TextPayload} payload */
function linkHint(patches, payload) {
  const own = new Set(patches.map(({positions: [position]}) => position));
  const words = payload.tokens.map((token, position) => ({...token, position}))
    .filter((token) => !token.special && !own.has(token.position) && Number.isInteger(token.start)).map((token) => token.position);
  if (!patches.length || !words.length || payload.kind === "generation") return [];
  const isLinked = (payload.maps?.sites ?? []).some((site) => weightsAt(site, [...site.limits.keys()], words, patches));
  const hint = make("p", "hint quiet linked", isLinked
    ? `Point at a word to see its weights (${visible(payload.maps?.shows ?? "")}) on the patches, click to keep them.`
    : "Words and patches show their own scores: there is no map from words to patches.");
  hint.dataset.linked = String(isLinked);
  return [hint];
}
