// The weight of an item, if weights were learned.

import type { ItemFigure } from "../contract";
import { share } from "../format";

export const ItemWeight = ({ figure }: { figure: ItemFigure | undefined }) =>
  figure?.learned ? <small>weight {share(figure.weight)}</small> : null;
